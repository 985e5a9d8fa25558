// The duties of tests/support/client_duties.py, by franz-go.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 60 * time.Second

type codec struct {
	name string
	kind kgo.CompressionCodec
}

var (
	bootstrap = kgo.SeedBrokers(strings.Split(os.Args[1], ",")...)
	name      = os.Args[2]
	start     = time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	codecs    = []codec{
		{"none", kgo.NoCompression()}, {"gzip", kgo.GzipCompression()}, {"snappy", kgo.SnappyCompression()},
		{"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()},
	}
	ctx = context.Background()
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func demand(met bool, format string, words ...any) {
	if !met {
		check(fmt.Errorf(format, words...))
	}
}

func until(what string, met func() bool) {
	for deadline := time.Now().Add(patience); !met(); time.Sleep(20 * time.Millisecond) {
		demand(time.Now().Before(deadline), "%s: not in time", what)
	}
}

func client(options ...kgo.Opt) *kgo.Client {
	found, err := kgo.NewClient(append(options, bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	check(err)
	return found
}

func admin() *kadm.Client { return kadm.NewClient(client()) }

func create() string {
	admin := admin()
	defer admin.Close()
	retention, segment := "86400000", "16777216"
	entries := map[string]*string{"retention.ms": &retention, "segment.bytes": &segment}
	for _, topic := range []struct {
		name       string
		partitions int32
		entries    map[string]*string
	}{{name, 3, entries}, {name + "-group", 4, nil}, {name + "-tx", 1, nil}} {
		_, err := admin.CreateTopic(ctx, topic.partitions, 1, topic.entries, topic.name)
		check(err)
	}
	topics, err := admin.ListTopics(ctx, name)
	check(err)
	demand(len(topics[name].Partitions) == 3, "%d partitions", len(topics[name].Partitions))
	return ""
}

func produce() string {
	var told []string
	for at, codec := range codecs {
		producer := client(kgo.ProducerBatchCompression(codec.kind))
		var batch []*kgo.Record
		for n := range 90 {
			batch = append(batch, &kgo.Record{
				Topic:     name,
				Partition: int32(n % 3),
				Key:       fmt.Appendf(nil, "%s-%d", codec.name, n),
				Value:     value(codec.name, n),
				Headers: []kgo.RecordHeader{
					{Key: "codec", Value: []byte(codec.name)}, {Key: "n", Value: []byte(strconv.Itoa(n))},
				},
				Timestamp: start.Add(time.Duration(90*at+n) * time.Second),
			})
		}
		check(producer.ProduceSync(ctx, batch...).FirstErr())
		producer.Close()
		told = append(told, codec.name)
	}
	return strings.Join(told, " ")
}

func value(codec string, n int) []byte {
	if n == 89 {
		return nil
	}
	return fmt.Appendf(nil, "%s %d %s", codec, n, strings.Repeat("x", 200))
}

// The next records of one partition from an offset on.
func take(topic string, partition int32, offset int64, count int, options ...kgo.Opt) []*kgo.Record {
	from := map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(offset)}}
	reader := client(append(options, kgo.ConsumePartitions(from))...)
	defer reader.Close()
	waits, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var got []*kgo.Record
	for len(got) < count {
		fetches := reader.PollFetches(waits)
		check(fetches.Err())
		got = append(got, fetches.Records()...)
	}
	return got
}

func read() string {
	for partition := range 3 {
		got := take(name, int32(partition), 0, 30*len(codecs))
		for at, record := range got {
			codec, n := codecs[at/30].name, at%30*3+partition
			demand(string(record.Key) == fmt.Sprintf("%s-%d", codec, n), "key %s", record.Key)
			wanted := value(codec, n)
			demand((record.Value == nil) == (wanted == nil) && string(record.Value) == string(wanted), "value %s", record.Value)
			demand(len(record.Headers) == 2 && string(record.Headers[0].Value) == codec &&
				record.Headers[1].Key == "n" && string(record.Headers[1].Value) == strconv.Itoa(n), "headers")
			demand(record.Timestamp.Equal(start.Add(time.Duration(at/30*90+n)*time.Second)), "time %s", record.Timestamp)
		}
	}
	return ""
}

// One member of the group, and what it holds and has seen.
type member struct {
	mutex  sync.Mutex
	holds  int
	seen   []int
	client *kgo.Client
	cancel context.CancelFunc
	ended  chan struct{}
}

func join() *member {
	found := &member{ended: make(chan struct{})}
	change := func(by int) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			found.mutex.Lock()
			defer found.mutex.Unlock()
			found.holds += by * len(partitions[name+"-group"])
		}
	}
	lost := change(-1)
	found.client = client(
		kgo.ConsumerGroup(name+"-g"), kgo.ConsumeTopics(name+"-group"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.OnPartitionsAssigned(change(1)), kgo.OnPartitionsLost(lost),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
			check(client.CommitUncommittedOffsets(ctx))
			lost(ctx, client, partitions)
		}),
	)
	waits, cancel := context.WithCancel(ctx)
	found.cancel = cancel
	go func() {
		defer close(found.ended)
		for waits.Err() == nil {
			fetches := found.client.PollFetches(waits)
			fetches.EachRecord(func(record *kgo.Record) {
				number, err := strconv.Atoi(string(record.Value))
				check(err)
				found.mutex.Lock()
				defer found.mutex.Unlock()
				found.seen = append(found.seen, number)
			})
		}
	}()
	return found
}

func (m *member) leave() {
	m.cancel()
	<-m.ended
	check(m.client.CommitUncommittedOffsets(ctx))
	m.client.Close()
}

func (m *member) holding(count int) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.holds == count
}

func (m *member) count() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return len(m.seen)
}

func sendNumbers(from, to int) {
	producer := client()
	defer producer.Close()
	var batch []*kgo.Record
	for n := from; n < to; n++ {
		batch = append(batch, &kgo.Record{Topic: name + "-group", Partition: int32(n % 4), Value: []byte(strconv.Itoa(n))})
	}
	check(producer.ProduceSync(ctx, batch...).FirstErr())
}

func rebalance() string {
	first, second := join(), join()
	until("two partitions each", func() bool { return first.holding(2) && second.holding(2) })
	sendNumbers(0, 200)
	until("100 records each", func() bool { return first.count() == 100 && second.count() == 100 })
	second.leave()
	until("all partitions for the one that stays", func() bool { return first.holding(4) })
	sendNumbers(200, 400)
	until("the records of all partitions", func() bool { return first.count() >= 300 })
	first.leave()
	once := map[int]bool{}
	for _, number := range append(first.seen, second.seen...) {
		demand(!once[number], "%d came twice", number)
		once[number] = true
	}
	demand(len(once) == 400, "%d of 400 records", len(once))
	return ""
}

func commit() string {
	admin := admin()
	defer admin.Close()
	told, err := admin.FetchOffsets(ctx, name+"-g")
	check(err)
	for partition, offset := range told[name+"-group"] {
		demand(offset.At == 100, "%d is committed for partition %d", offset.At, partition)
	}
	sendNumbers(400, 408)
	third := join()
	until("what came after the commit", func() bool { return third.count() == 8 })
	for _, number := range third.seen {
		demand(number >= 400, "%d was committed before", number)
	}
	third.leave()
	lags, err := admin.Lag(ctx, name+"-g")
	check(err)
	check(lags.Error())
	demand(lags[name+"-g"].Lag.Total() == 0, "a lag of %d", lags[name+"-g"].Lag.Total())
	return ""
}

func seek() string {
	admin := admin()
	defer admin.Close()
	offsets, err := admin.ListOffsetsAfterMilli(ctx, start.UnixMilli()+30_500, name)
	check(err)
	found, _ := offsets.Lookup(name, 1)
	demand(found.Offset == 10, "offset %d", found.Offset)
	got := take(name, 1, found.Offset, 1)
	demand(string(got[0].Key) == "none-31", "key %s", got[0].Key)
	offsets, err = admin.ListOffsetsAfterMilli(ctx, start.UnixMilli()+7_200_000, name)
	check(err)
	found, _ = offsets.Lookup(name, 1)
	demand(found.Offset == int64(30*len(codecs)), "offset %d for a time to come", found.Offset) // it then asks for the end
	return ""
}

func transactions() string {
	producer := client(kgo.TransactionalID(name+"-id"), kgo.DefaultProduceTopic(name+"-tx"))
	for _, letter := range []string{"a", "b", "c"} {
		check(producer.BeginTransaction())
		for range 10 {
			check(producer.ProduceSync(ctx, kgo.StringRecord(letter)).FirstErr())
		}
		check(producer.Flush(ctx))
		check(producer.EndTransaction(ctx, kgo.TransactionEndTry(letter != "b")))
	}
	producer.Close()
	for level, count := range map[kgo.IsolationLevel]int{kgo.ReadCommitted(): 20, kgo.ReadUncommitted(): 30} {
		letters := ""
		for _, record := range take(name+"-tx", 0, 0, count, kgo.FetchIsolationLevel(level)) {
			letters += string(record.Value)
		}
		middle := strings.Repeat("b", count-20)
		demand(letters == strings.Repeat("a", 10)+middle+strings.Repeat("c", 10), "records %s", letters)
	}
	return ""
}

func alter() string {
	admin := admin()
	defer admin.Close()
	retention := "172800000"
	done, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &retention}}, name)
	check(err)
	check(done[0].Err)
	found, err := admin.DescribeTopicConfigs(ctx, name)
	check(err)
	told := map[string]string{}
	for _, config := range found[0].Configs {
		told[config.Key] = config.MaybeValue()
	}
	demand(told["retention.ms"] == retention && told["segment.bytes"] == "16777216", "settings %v", told)
	return ""
}

func remove() string {
	admin := admin()
	defer admin.Close()
	_, err := admin.DeleteGroup(ctx, name+"-g")
	check(err)
	_, err = admin.DeleteTopic(ctx, name+"-group")
	check(err)
	groups, err := admin.ListGroups(ctx)
	check(err)
	_, there := groups[name+"-g"]
	demand(!there, "the group is still listed")
	until("the end of the topic", func() bool {
		topics, err := admin.ListTopics(ctx)
		check(err)
		return !topics.Has(name + "-group")
	})
	return "topics groups"
}

func main() {
	if os.Args[1] == "secured" {
		secured(os.Args[2], os.Args[3])
		return
	}
	for _, duty := range []struct {
		name string
		do   func() string
	}{
		{"create", create}, {"produce", produce}, {"read", read}, {"rebalance", rebalance}, {"commit", commit},
		{"seek by time", seek}, {"read committed", transactions}, {"alter", alter}, {"delete", remove},
	} {
		fmt.Printf("did %s: %s\n", duty.name, duty.do())
	}
}
