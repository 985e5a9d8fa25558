// Sends records in every compression and reads them back by a group, then asks what administrators ask.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bootstrap, topic := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	seeds := kgo.SeedBrokers(bootstrap)
	client, err := kgo.NewClient(seeds)
	check(err)
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(ctx, 3, 1, nil, topic)
	check(err)

	codecs := []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
	}
	wanted := map[string]bool{}
	for at, codec := range codecs {
		producer, err := kgo.NewClient(seeds, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codec))
		check(err)
		for number := 0; number < 200; number++ {
			value := fmt.Sprintf("%d-%d-%0200d", at, number, 0)
			wanted[value] = true
			header := kgo.RecordHeader{Key: "h", Value: []byte{byte(at)}}
			record := &kgo.Record{Key: []byte("k"), Value: []byte(value), Headers: []kgo.RecordHeader{header}}
			producer.Produce(ctx, record, func(_ *kgo.Record, err error) { check(err) })
		}
		check(producer.Flush(ctx))
		producer.Close()
	}

	start := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	group, err := kgo.NewClient(seeds, kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), start, kgo.DisableAutoCommit())
	check(err)
	total := len(wanted)
	for seen := 0; seen < total; {
		fetches := group.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			if !wanted[string(record.Value)] || record.Headers[0].Key != "h" {
				check(fmt.Errorf("not sent, or here twice: %s", record.Value))
			}
			delete(wanted, string(record.Value))
			seen++
		})
	}
	check(group.CommitUncommittedOffsets(ctx))
	group.Close()

	lags, err := admin.Lag(ctx, topic)
	check(err)
	check(lags.Error())
	if lag := lags[topic].Lag.Total(); lag != 0 {
		check(fmt.Errorf("a lag of %d", lag))
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	check(err)
	var sum int64
	ends.Each(func(offset kadm.ListedOffset) { sum += offset.Offset })
	if sum != int64(total) {
		check(fmt.Errorf("%d records in the topic", sum))
	}
	_, err = admin.DescribeTopicConfigs(ctx, topic)
	check(err)
	_, err = admin.DeleteGroups(ctx, topic)
	check(err)
	deleted, err := admin.DeleteTopics(ctx, topic)
	check(err)
	check(deleted.Error())
	fmt.Println("ok")
}
