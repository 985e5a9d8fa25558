// The duties of tests/support/client_duties.py, by sarama.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const patience = 60 * time.Second

var (
	bootstrap = strings.Split(os.Args[1], ",")
	name      = os.Args[2]
	start     = time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	codecs    = []sarama.CompressionCodec{
		sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD,
	}
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

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func admin() sarama.ClusterAdmin {
	found, err := sarama.NewClusterAdmin(bootstrap, settings())
	check(err)
	return found
}

func create() string {
	admin := admin()
	defer admin.Close()
	retention, segment := "86400000", "16777216"
	entries := map[string]*string{"retention.ms": &retention, "segment.bytes": &segment}
	check(admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: entries}, false))
	check(admin.CreateTopic(name+"-group", &sarama.TopicDetail{NumPartitions: 4, ReplicationFactor: 1}, false))
	check(admin.CreateTopic(name+"-tx", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	topics, err := admin.DescribeTopics([]string{name})
	check(err)
	demand(len(topics[0].Partitions) == 3, "%d partitions", len(topics[0].Partitions))
	return ""
}

func produce() string {
	var told []string
	for at, codec := range codecs {
		config := settings()
		config.Producer.Compression = codec
		config.Producer.Flush.Messages = 90
		producer, err := sarama.NewSyncProducer(bootstrap, config)
		check(err)
		var batch []*sarama.ProducerMessage
		for n := range 90 {
			batch = append(batch, &sarama.ProducerMessage{
				Topic:     name,
				Partition: int32(n % 3),
				Key:       sarama.StringEncoder(fmt.Sprintf("%s-%d", codec, n)),
				Value:     value(codec, n),
				Headers: []sarama.RecordHeader{
					{Key: []byte("codec"), Value: []byte(codec.String())}, {Key: []byte("n"), Value: []byte(strconv.Itoa(n))},
				},
				Timestamp: start.Add(time.Duration(90*at+n) * time.Second),
			})
		}
		check(producer.SendMessages(batch))
		check(producer.Close())
		told = append(told, codec.String())
	}
	return strings.Join(told, " ")
}

func value(codec sarama.CompressionCodec, n int) sarama.Encoder {
	if n == 89 {
		return nil
	}
	return sarama.StringEncoder(fmt.Sprintf("%s %d %s", codec, n, strings.Repeat("x", 200)))
}

// The next records of one partition from an offset on.
func take(topic string, partition int32, offset int64, count int, config *sarama.Config) []*sarama.ConsumerMessage {
	consumer, err := sarama.NewConsumer(bootstrap, config)
	check(err)
	defer consumer.Close()
	reader, err := consumer.ConsumePartition(topic, partition, offset)
	check(err)
	defer reader.Close()
	var got []*sarama.ConsumerMessage
	for len(got) < count {
		select {
		case message := <-reader.Messages():
			got = append(got, message)
		case <-time.After(patience):
			check(fmt.Errorf("%d of %d records of %s-%d came", len(got), count, topic, partition))
		}
	}
	return got
}

func read() string {
	for partition := range 3 {
		got := take(name, int32(partition), 0, 30*len(codecs), settings())
		for at, message := range got {
			codec, n := codecs[at/30], at%30*3+partition
			demand(string(message.Key) == fmt.Sprintf("%s-%d", codec, n), "key %s", message.Key)
			wanted := value(codec, n)
			if wanted == nil {
				demand(message.Value == nil, "a value where none was sent")
			} else {
				bytes, _ := wanted.Encode()
				demand(string(message.Value) == string(bytes), "value %s", message.Value)
			}
			demand(len(message.Headers) == 2 && string(message.Headers[0].Value) == codec.String() &&
				string(message.Headers[1].Key) == "n" && string(message.Headers[1].Value) == strconv.Itoa(n), "headers")
			demand(message.Timestamp.Equal(start.Add(time.Duration(at/30*90+n)*time.Second)), "time %s", message.Timestamp)
		}
	}
	return ""
}

// One member of the group, and what it holds and has seen.
type member struct {
	mutex  sync.Mutex
	holds  int
	seen   []int
	group  sarama.ConsumerGroup
	cancel context.CancelFunc
	ended  chan struct{}
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.holds = len(session.Claims()[name+"-group"])
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	session.Commit()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.holds = 0
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		number, err := strconv.Atoi(string(message.Value))
		check(err)
		m.mutex.Lock()
		m.seen = append(m.seen, number)
		m.mutex.Unlock()
		session.MarkMessage(message, "")
	}
	return nil
}

func join() *member {
	group, err := sarama.NewConsumerGroup(bootstrap, name+"-g", settings())
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	found := &member{group: group, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(found.ended)
		for ctx.Err() == nil {
			err := group.Consume(ctx, []string{name + "-group"}, found)
			if !errors.Is(err, sarama.ErrClosedConsumerGroup) {
				check(err)
			}
		}
	}()
	return found
}

func (m *member) leave() {
	m.cancel()
	<-m.ended
	check(m.group.Close())
}

func (m *member) has() (int, int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.holds, len(m.seen)
}

func (m *member) holding(count int) bool { holds, _ := m.has(); return holds == count }

func (m *member) count() int { _, seen := m.has(); return seen }

func sendNumbers(from, to int) {
	producer, err := sarama.NewSyncProducer(bootstrap, settings())
	check(err)
	var batch []*sarama.ProducerMessage
	for n := from; n < to; n++ {
		batch = append(batch, &sarama.ProducerMessage{
			Topic: name + "-group", Partition: int32(n % 4), Value: sarama.StringEncoder(strconv.Itoa(n)),
		})
	}
	check(producer.SendMessages(batch))
	check(producer.Close())
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
	topic := name + "-group"
	told, err := admin.ListConsumerGroupOffsets(name+"-g", map[string][]int32{topic: {0, 1, 2, 3}})
	check(err)
	for partition, block := range told.Blocks[topic] {
		demand(block.Offset == 100, "%d is committed for partition %d", block.Offset, partition)
	}
	sendNumbers(400, 408)
	third := join()
	until("what came after the commit", func() bool { return third.count() == 8 })
	for _, number := range third.seen {
		demand(number >= 400, "%d was committed before", number)
	}
	third.leave()
	return ""
}

func seek() string {
	client, err := sarama.NewClient(bootstrap, settings())
	check(err)
	defer client.Close()
	offset, err := client.GetOffset(name, 1, start.UnixMilli()+30_500)
	check(err)
	demand(offset == 10, "offset %d", offset)
	got := take(name, 1, offset, 1, settings())
	demand(string(got[0].Key) == "none-31", "key %s", got[0].Key)
	offset, err = client.GetOffset(name, 1, start.UnixMilli()+7_200_000)
	check(err)
	demand(offset == -1, "offset %d for a time to come", offset)
	return ""
}

func transactions() string {
	config := settings()
	config.Producer.Transaction.ID = name + "-id"
	producer, err := sarama.NewSyncProducer(bootstrap, config)
	check(err)
	for _, letter := range []string{"a", "b", "c"} {
		check(producer.BeginTxn())
		for range 10 {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: name + "-tx", Value: sarama.StringEncoder(letter)})
			check(err)
		}
		if letter == "b" {
			check(producer.AbortTxn())
		} else {
			check(producer.CommitTxn())
		}
	}
	check(producer.Close())
	for level, count := range map[sarama.IsolationLevel]int{sarama.ReadCommitted: 20, sarama.ReadUncommitted: 30} {
		config := settings()
		config.Consumer.IsolationLevel = level
		letters := ""
		for _, message := range take(name+"-tx", 0, 0, count, config) {
			letters += string(message.Value)
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
	entries := map[string]sarama.IncrementalAlterConfigsEntry{
		"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &retention},
	}
	check(admin.IncrementalAlterConfig(sarama.TopicResource, name, entries, false))
	found, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: name})
	check(err)
	told := map[string]string{}
	for _, entry := range found {
		told[entry.Name] = entry.Value
	}
	demand(told["retention.ms"] == retention && told["segment.bytes"] == "16777216", "settings %v", told)
	return ""
}

func remove() string {
	admin := admin()
	defer admin.Close()
	check(admin.DeleteConsumerGroup(name + "-g"))
	check(admin.DeleteTopic(name + "-group"))
	groups, err := admin.ListConsumerGroups()
	check(err)
	_, there := groups[name+"-g"]
	demand(!there, "the group is still listed")
	until("the end of the topic", func() bool {
		topics, err := admin.ListTopics()
		check(err)
		_, there := topics[name+"-group"]
		return !there
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
