//! The duties of tests/support/secured_duties.py, by rdkafka.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rdkafka::client::OAuthToken;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, ClientContext, Statistics};

use crate::PATIENCE;

/// Brings the token, and keeps how records were answered and the longest time in ms for which it was told to wait.
#[derive(Default)]
struct Context {
    token: String,
    answers: Mutex<Vec<Result<(), KafkaError>>>,
    throttled: AtomicI64,
}

impl ClientContext for Context {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        // It is never replaced: it outlasts the program.
        Ok(OAuthToken { token: self.token.clone(), principal_name: String::new(), lifetime_ms: i64::MAX / 100_000 })
    }

    fn stats(&self, told: Statistics) {
        for broker in told.brokers.values() {
            if let Some(window) = &broker.throttle {
                self.throttled.fetch_max(window.max, Ordering::SeqCst);
            }
        }
    }
}

impl ConsumerContext for Context {}

impl ProducerContext for Context {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let answer = result.as_ref().map(|_| ()).map_err(|(error, _)| error.clone());
        self.answers.lock().unwrap().push(answer);
    }
}

struct Scenario(HashMap<String, String>);

impl Scenario {
    fn read(file: &str) -> Scenario {
        let text = std::fs::read_to_string(file).unwrap();
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Scenario(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn settings(&self) -> ClientConfig {
        let mut found = ClientConfig::new();
        for (name, value) in self.0.iter().filter(|(name, _)| !name.starts_with("scenario.")) {
            found.set(name, value);
        }
        found
    }

    fn context(&self) -> Context {
        Context { token: self.0["scenario.token"].clone(), ..Context::default() }
    }

    fn producer(&self) -> BaseProducer<Context> {
        self.settings().set("statistics.interval.ms", "100").create_with_context(self.context()).unwrap()
    }

    /// How each of these values was answered.
    fn answers(to: &BaseProducer<Context>, topic: &str, values: &[String]) -> Vec<Result<(), KafkaError>> {
        for value in values {
            to.send(BaseRecord::<(), str>::to(topic).payload(value)).unwrap();
        }
        to.flush(PATIENCE).unwrap();
        std::mem::take(&mut *to.context().answers.lock().unwrap())
    }

    fn write(&self, to: &BaseProducer<Context>, values: &[String]) {
        let answers = Self::answers(to, &self.0["scenario.topic"], values);
        assert_eq!(answers, vec![Ok(()); values.len()]);
    }

    fn rights(&self) -> String {
        let numbers: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let to = self.producer();
        self.write(&to, &numbers);
        let refused = Self::answers(&to, &self.0["scenario.other"], &["x".to_owned()]);
        assert_eq!(refused, [Err(KafkaError::MessageProduction(RDKafkaErrorCode::TopicAuthorizationFailed))]);
        let mut settings = self.settings();
        settings.set("group.id", &self.0["scenario.group"]).set("enable.auto.commit", "false");
        settings.set("auto.offset.reset", "earliest");
        let from: BaseConsumer<Context> = settings.create_with_context(self.context()).unwrap();
        from.subscribe(&[&self.0["scenario.topic"]]).unwrap();
        let (mut got, deadline) = (Vec::new(), Instant::now() + PATIENCE);
        while got.len() < numbers.len() {
            assert!(Instant::now() < deadline, "{} of 200 records came", got.len());
            if let Some(message) = from.poll(Duration::from_millis(200)) {
                got.push(String::from_utf8(message.unwrap().payload().unwrap().to_vec()).unwrap());
            }
        }
        assert_eq!(got, numbers);
        from.commit_consumer_state(CommitMode::Sync).unwrap();
        String::new()
    }

    fn again(&self) -> String {
        let to = self.producer();
        let end = Instant::now() + Duration::from_secs_f64(self.0["scenario.seconds"].parse().unwrap());
        let mut sent = 0;
        while Instant::now() < end {
            self.write(&to, &["x".to_owned()]);
            sleep(Duration::from_millis(50));
            sent += 1;
        }
        sent.to_string()
    }

    fn quota(&self) -> String {
        let to = self.producer();
        for _ in 0..4 {
            self.write(&to, &vec!["x".repeat(1000); 40]);
        }
        to.context().throttled.load(Ordering::SeqCst).to_string()
    }
}

pub fn run(duty: &str, file: &str) {
    let scenario = Scenario::read(file);
    let told = match duty {
        "rights" => scenario.rights(),
        "again" => scenario.again(),
        "quota" => scenario.quota(),
        other => panic!("there is no duty {other}"),
    };
    println!("did {duty}: {told}");
}
