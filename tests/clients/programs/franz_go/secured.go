// The duties of tests/support/secured_duties.py, by franz-go.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type settings map[string]string

func readSettings(file string) settings {
	text, err := os.ReadFile(file)
	check(err)
	found := settings{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, value, _ := strings.Cut(line, "=")
		found[key] = value
	}
	return found
}

func (s settings) tls() *tls.Config {
	authority, err := os.ReadFile(s["ssl.ca.location"])
	check(err)
	found := &tls.Config{RootCAs: x509.NewCertPool()}
	demand(found.RootCAs.AppendCertsFromPEM(authority), "no certificate in %s", s["ssl.ca.location"])
	if own := s["ssl.certificate.location"]; own != "" {
		pair, err := tls.LoadX509KeyPair(own, s["ssl.key.location"])
		check(err)
		found.Certificates = []tls.Certificate{pair}
	}
	return found
}

func (s settings) mechanism() sasl.Mechanism {
	user, password := s["sasl.username"], s["sasl.password"]
	switch s["sasl.mechanism"] {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			return oauth.Auth{Token: s["scenario.token"]}, nil
		})
	}
	return nil
}

// Keeps the longest time in ms for which a broker said to wait.
type throttled struct{ longest atomic.Int64 }

func (t *throttled) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	t.longest.Store(max(t.longest.Load(), interval.Milliseconds()))
}

func (s settings) client(options ...kgo.Opt) *kgo.Client {
	options = append(options,
		kgo.SeedBrokers(s["bootstrap.servers"]), kgo.ClientID(s["client.id"]), kgo.DialTLSConfig(s.tls()),
		kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(s["scenario.topic"]),
	)
	if mechanism := s.mechanism(); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	found, err := kgo.NewClient(options...)
	check(err)
	return found
}

func (s settings) rights() string {
	producer := s.client()
	defer producer.Close()
	var batch []*kgo.Record
	for n := range 200 {
		batch = append(batch, kgo.StringRecord(strconv.Itoa(n)))
	}
	check(producer.ProduceSync(ctx, batch...).FirstErr())
	refused := producer.ProduceSync(ctx, &kgo.Record{Topic: s["scenario.other"], Value: []byte("x")}).FirstErr()
	demand(errors.Is(refused, kerr.TopicAuthorizationFailed), "not refused, but %v", refused)
	reader := s.client(
		kgo.ConsumerGroup(s["scenario.group"]), kgo.ConsumeTopics(s["scenario.topic"]), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	defer reader.Close()
	waits, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n := 0; n < 200; {
		fetches := reader.PollFetches(waits)
		check(fetches.Err())
		for _, record := range fetches.Records() {
			demand(string(record.Value) == strconv.Itoa(n), "%s instead of %d", record.Value, n)
			n++
		}
	}
	check(reader.CommitUncommittedOffsets(ctx))
	return ""
}

func (s settings) again() string {
	producer := s.client()
	defer producer.Close()
	seconds, err := strconv.ParseFloat(s["scenario.seconds"], 64)
	check(err)
	sent := 0
	for end := time.Now().Add(time.Duration(seconds * float64(time.Second))); time.Now().Before(end); sent++ {
		check(producer.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr())
		time.Sleep(50 * time.Millisecond)
	}
	return strconv.Itoa(sent)
}

func (s settings) quota() string {
	seen := &throttled{}
	// What is counted is what is sent: it would compress.
	producer := s.client(kgo.WithHooks(seen), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer producer.Close()
	for range 4 {
		var batch []*kgo.Record
		for range 40 {
			batch = append(batch, kgo.StringRecord(strings.Repeat("x", 1000)))
		}
		check(producer.ProduceSync(ctx, batch...).FirstErr())
	}
	return strconv.FormatInt(seen.longest.Load(), 10)
}

func secured(duty, file string) {
	given := readSettings(file)
	work := map[string]func() string{"rights": given.rights, "again": given.again, "quota": given.quota}
	fmt.Printf("did %s: %s\n", duty, work[duty]())
}
