//! The duties of tests/support/client_duties.py, by rdkafka: librdkafka in Rust.

mod secured;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::{DeliveryResult, Header, Headers, Message, OwnedHeaders, OwnedMessage};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

const PATIENCE: Duration = Duration::from_secs(60);
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

fn until(what: &str, met: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !met() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        sleep(Duration::from_millis(20));
    }
}

/// Counts what is delivered; what is not ends the program.
#[derive(Default)]
struct Delivered(AtomicUsize);

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            panic!("not delivered: {error}");
        }
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// One member of the group on a thread of its own, and what it holds and has seen.
struct Member {
    holds: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<usize>>>,
    leaves: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Member {
    fn count(&self) -> usize {
        assert!(!self.thread.is_finished(), "a member has failed");
        self.seen.lock().unwrap().len()
    }

    fn holding(&self, count: usize) -> bool {
        self.holds.load(Ordering::SeqCst) == count
    }

    fn leave(self) -> Vec<usize> {
        self.leaves.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
        Arc::try_unwrap(self.seen).unwrap().into_inner().unwrap()
    }
}

struct Duties {
    bootstrap: String,
    name: String,
    group_topic: String,
    group: String,
    start: i64,
}

fn value(codec: &str, n: usize) -> Option<String> {
    (n != 89).then(|| format!("{codec} {n} {}", "x".repeat(200)))
}

fn text(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

impl Duties {
    fn settings(&self, more: &[(&str, &str)]) -> ClientConfig {
        let mut found = ClientConfig::new();
        found.set("bootstrap.servers", &self.bootstrap);
        for (key, value) in more {
            found.set(*key, *value);
        }
        found
    }

    fn producer(&self, more: &[(&str, &str)]) -> BaseProducer<Delivered> {
        self.settings(more).create_with_context(Delivered::default()).unwrap()
    }

    fn consumer(&self, more: &[(&str, &str)]) -> BaseConsumer {
        let mut found = self.settings(&[("group.id", "none"), ("enable.auto.commit", "false")]);
        found.set("auto.offset.reset", "earliest");
        for (key, value) in more {
            found.set(*key, *value);
        }
        found.create().unwrap()
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.settings(&[]).create().unwrap()
    }

    fn has_topic(&self, topic: &str) -> bool {
        let told = self.consumer(&[]);
        let told = told.fetch_metadata(None, PATIENCE).unwrap();
        told.topics().iter().any(|one| one.name() == topic)
    }

    fn create(&self) -> String {
        let once = || TopicReplication::Fixed(1);
        let transactions = format!("{}-tx", self.name);
        let topics = [
            NewTopic::new(&self.name, 3, once()).set("retention.ms", "86400000").set("segment.bytes", "16777216"),
            NewTopic::new(&self.group_topic, 4, once()),
            NewTopic::new(&transactions, 1, once()),
        ];
        for result in block_on(self.admin().create_topics(&topics, &AdminOptions::new())).unwrap() {
            result.unwrap();
        }
        let told = self.consumer(&[]).fetch_metadata(Some(&self.name), PATIENCE).unwrap();
        assert_eq!(told.topics()[0].partitions().len(), 3);
        String::new()
    }

    fn produce(&self) -> String {
        for (batch, codec) in CODECS.iter().enumerate() {
            let to = self.producer(&[("compression.type", codec), ("enable.idempotence", "true"), ("linger.ms", "50")]);
            for n in 0..90 {
                let (key, number, value) = (format!("{codec}-{n}"), n.to_string(), value(codec, n));
                let headers = OwnedHeaders::new()
                    .insert(Header { key: "codec", value: Some(*codec) })
                    .insert(Header { key: "n", value: Some(&number) });
                let mut record = BaseRecord::to(&self.name)
                    .partition((n % 3) as i32)
                    .key(&key)
                    .headers(headers)
                    .timestamp(self.start + (90 * batch + n) as i64 * 1000);
                record.payload = value.as_ref();
                to.send(record).map_err(|(error, _)| error).unwrap();
            }
            to.flush(PATIENCE).unwrap();
            assert_eq!(to.context().0.load(Ordering::SeqCst), 90);
        }
        CODECS.join(" ")
    }

    /// The next records of one partition from an offset on.
    fn take(&self, topic: &str, partition: i32, offset: i64, count: usize, more: &[(&str, &str)]) -> Vec<OwnedMessage> {
        let from = self.consumer(more);
        let mut at = TopicPartitionList::new();
        at.add_partition_offset(topic, partition, Offset::Offset(offset)).unwrap();
        from.assign(&at).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut got = Vec::new();
        while got.len() < count {
            assert!(Instant::now() < deadline, "{} of {count} records of {topic}-{partition} came", got.len());
            if let Some(message) = from.poll(Duration::from_millis(200)) {
                got.push(message.unwrap().detach());
            }
        }
        got
    }

    fn read(&self) -> String {
        for partition in 0..3 {
            let got = self.take(&self.name, partition as i32, 0, 30 * CODECS.len(), &[]);
            for (at, message) in got.iter().enumerate() {
                let (codec, n) = (CODECS[at / 30], at % 30 * 3 + partition);
                assert_eq!(text(message.key()), Some(format!("{codec}-{n}")));
                assert_eq!(text(message.payload()), value(codec, n));
                let told: Vec<_> = message.headers().unwrap().iter().map(|one| (one.key, text(one.value))).collect();
                assert_eq!(told, [("codec", Some(codec.to_string())), ("n", Some(n.to_string()))]);
                assert_eq!(message.timestamp().to_millis(), Some(self.start + (at / 30 * 90 + n) as i64 * 1000));
            }
        }
        String::new()
    }

    fn join(&self) -> Member {
        let (holds, seen, leaves) = <(Arc<AtomicUsize>, Arc<Mutex<Vec<usize>>>, Arc<AtomicBool>)>::default();
        let from = self.consumer(&[
            ("group.id", &self.group),
            ("session.timeout.ms", "10000"),
            ("heartbeat.interval.ms", "500"),
        ]);
        from.subscribe(&[&self.group_topic]).unwrap();
        let (held, found, left) = (holds.clone(), seen.clone(), leaves.clone());
        let thread = spawn(move || {
            while !left.load(Ordering::SeqCst) {
                let message = from.poll(Duration::from_millis(100));
                held.store(from.assignment().unwrap().count(), Ordering::SeqCst);
                if let Some(message) = message {
                    let message = message.unwrap();
                    found.lock().unwrap().push(text(message.payload()).unwrap().parse().unwrap());
                    from.commit_message(&message, CommitMode::Sync).unwrap();
                }
            }
        });
        Member { holds, seen, leaves, thread }
    }

    fn send_numbers(&self, numbers: std::ops::Range<usize>) {
        let to = self.producer(&[("enable.idempotence", "true")]);
        let count = numbers.len();
        for n in numbers {
            let number = n.to_string();
            let record = BaseRecord::<str, str>::to(&self.group_topic).partition((n % 4) as i32).payload(&number);
            to.send(record).map_err(|(error, _)| error).unwrap();
        }
        to.flush(PATIENCE).unwrap();
        assert_eq!(to.context().0.load(Ordering::SeqCst), count);
    }

    fn rebalance(&self) -> String {
        let (first, second) = (self.join(), self.join());
        until("two partitions each", || first.holding(2) && second.holding(2));
        self.send_numbers(0..200);
        until("100 records each", || first.count() == 100 && second.count() == 100);
        let others = second.leave();
        until("all partitions for the one that stays", || first.holding(4));
        self.send_numbers(200..400);
        until("the records of all partitions", || first.count() >= 300);
        let mut all = first.leave();
        all.extend(others);
        assert_eq!((all.len(), all.iter().collect::<HashSet<_>>().len()), (400, 400));
        String::new()
    }

    fn commit(&self) -> String {
        let mut asked = TopicPartitionList::new();
        asked.add_partition_range(&self.group_topic, 0, 3);
        let told = self.consumer(&[("group.id", &self.group)]).committed_offsets(asked, PATIENCE).unwrap();
        assert!(told.elements().iter().all(|one| one.offset() == Offset::Offset(100)), "{told:?}");
        self.send_numbers(400..408);
        let third = self.join();
        until("what came after the commit", || third.count() == 8);
        assert!(third.leave().iter().all(|number| *number >= 400));
        String::new()
    }

    fn seek(&self) -> String {
        let at = |time| {
            let mut asked = TopicPartitionList::new();
            asked.add_partition_offset(&self.name, 1, Offset::Offset(time)).unwrap();
            let told = self.consumer(&[]).offsets_for_times(asked, PATIENCE).unwrap();
            told.elements()[0].offset()
        };
        assert_eq!(at(self.start + 30_500), Offset::Offset(10));
        assert_eq!(text(self.take(&self.name, 1, 10, 1, &[])[0].key()), Some("none-31".to_string()));
        assert_eq!(at(self.start + 7_200_000), Offset::End);
        String::new()
    }

    fn transactions(&self) -> String {
        let topic = format!("{}-tx", self.name);
        let to = self.producer(&[("transactional.id", &format!("{}-id", self.name))]);
        to.init_transactions(PATIENCE).unwrap();
        for letter in ["a", "b", "c"] {
            to.begin_transaction().unwrap();
            for _ in 0..10 {
                let record = BaseRecord::<str, str>::to(&topic).payload(letter);
                to.send(record).map_err(|(error, _)| error).unwrap();
            }
            to.flush(PATIENCE).unwrap();
            match letter {
                "b" => to.abort_transaction(PATIENCE).unwrap(),
                _ => to.commit_transaction(PATIENCE).unwrap(),
            }
        }
        for (level, count) in [("read_committed", 20), ("read_uncommitted", 30)] {
            let got = self.take(&topic, 0, 0, count, &[("isolation.level", level)]);
            let letters: String = got.iter().map(|message| text(message.payload()).unwrap()).collect();
            assert_eq!(letters, format!("{}{}{}", "a".repeat(10), "b".repeat(count - 20), "c".repeat(10)));
        }
        String::new()
    }

    fn alter(&self) -> String {
        let resource = ResourceSpecifier::Topic(&self.name);
        // It knows only the older request, which takes back whatever it does not name.
        let entries = HashMap::from([("retention.ms", "172800000"), ("segment.bytes", "16777216")]);
        let change = AlterConfig { specifier: resource, entries };
        for result in block_on(self.admin().alter_configs([&change], &AdminOptions::new())).unwrap() {
            result.unwrap();
        }
        let told = block_on(self.admin().describe_configs([&resource], &AdminOptions::new())).unwrap();
        let told = told[0].as_ref().unwrap().entry_map();
        assert_eq!(told["retention.ms"].value.as_deref(), Some("172800000"));
        assert_eq!(told["segment.bytes"].value.as_deref(), Some("16777216"));
        String::new()
    }

    fn delete(&self) -> String {
        for result in block_on(self.admin().delete_groups(&[&self.group], &AdminOptions::new())).unwrap() {
            result.unwrap();
        }
        for result in block_on(self.admin().delete_topics(&[&self.group_topic], &AdminOptions::new())).unwrap() {
            result.unwrap();
        }
        let told = self.consumer(&[]).fetch_group_list(None, PATIENCE).unwrap();
        assert!(told.groups().iter().all(|one| one.name() != self.group), "the group is still listed");
        until("the end of the topic", || !self.has_topic(&self.group_topic));
        "topics groups".to_string()
    }
}

fn main() {
    // A thread that fails ends the program.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        told(what);
        std::process::exit(1);
    }));
    let given: Vec<String> = std::env::args().collect();
    if given[1] == "secured" {
        return secured::run(&given[2], &given[3]);
    }
    let (bootstrap, name) = (given[1].clone(), given[2].clone());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let (group_topic, group) = (format!("{name}-group"), format!("{name}-g"));
    let duties = Duties { bootstrap, name, group_topic, group, start: now - 3_600_000 };
    let all: [(&str, fn(&Duties) -> String); 9] = [
        ("create", Duties::create),
        ("produce", Duties::produce),
        ("read", Duties::read),
        ("rebalance", Duties::rebalance),
        ("commit", Duties::commit),
        ("seek by time", Duties::seek),
        ("read committed", Duties::transactions),
        ("alter", Duties::alter),
        ("delete", Duties::delete),
    ];
    for (duty, work) in all {
        println!("did {duty}: {}", work(&duties));
    }
}
