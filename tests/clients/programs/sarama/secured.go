// The duties of tests/support/secured_duties.py, by sarama.
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
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
	"github.com/xdg-go/scram"
)

type given map[string]string

func readGiven(file string) given {
	text, err := os.ReadFile(file)
	check(err)
	found := given{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, value, _ := strings.Cut(line, "=")
		found[key] = value
	}
	return found
}

func (g given) tls() *tls.Config {
	authority, err := os.ReadFile(g["ssl.ca.location"])
	check(err)
	found := &tls.Config{RootCAs: x509.NewCertPool()}
	demand(found.RootCAs.AppendCertsFromPEM(authority), "no certificate in %s", g["ssl.ca.location"])
	if own := g["ssl.certificate.location"]; own != "" {
		pair, err := tls.LoadX509KeyPair(own, g["ssl.key.location"])
		check(err)
		found.Certificates = []tls.Certificate{pair}
	}
	return found
}

// The side of SCRAM that sarama leaves to its users.
type conversation struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

func (c *conversation) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

func (g given) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: g["scenario.token"]}, nil
}

func (g given) config() *sarama.Config {
	config := settings()
	config.ClientID = g["client.id"]
	config.Producer.Partitioner = sarama.NewHashPartitioner
	config.Net.TLS.Enable, config.Net.TLS.Config = true, g.tls()
	if mechanism := g["sasl.mechanism"]; mechanism != "" {
		login := &config.Net.SASL
		login.Enable, login.Mechanism = true, sarama.SASLMechanism(mechanism)
		login.User, login.Password = g["sasl.username"], g["sasl.password"]
		if mechanism == "OAUTHBEARER" {
			login.TokenProvider = g
		}
		hash := scram.SHA256
		if mechanism == "SCRAM-SHA-512" {
			hash = scram.SHA512
		}
		login.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: hash} }
	}
	return config
}

func (g given) producer(config *sarama.Config) sarama.SyncProducer {
	found, err := sarama.NewSyncProducer([]string{g["bootstrap.servers"]}, config)
	check(err)
	return found
}

// Reads numbers from 0 on.
type reader struct {
	next int
	done context.CancelFunc
}

func (r *reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for r.next < 200 {
		select {
		case message := <-claim.Messages():
			demand(message != nil && string(message.Value) == strconv.Itoa(r.next), "%v instead of %d", message, r.next)
			session.MarkMessage(message, "")
			r.next++
		case <-time.After(patience):
			check(fmt.Errorf("%d of 200 records came", r.next))
		}
	}
	session.Commit()
	r.done()
	return nil
}

func (g given) rights() string {
	producer := g.producer(g.config())
	defer producer.Close()
	for n := range 200 {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: g["scenario.topic"], Value: sarama.StringEncoder(strconv.Itoa(n)),
		})
		check(err)
	}
	_, _, refused := producer.SendMessage(&sarama.ProducerMessage{
		Topic: g["scenario.other"], Value: sarama.StringEncoder("x"),
	})
	demand(errors.Is(refused, sarama.ErrTopicAuthorizationFailed), "not refused, but %v", refused)
	group, err := sarama.NewConsumerGroup([]string{g["bootstrap.servers"]}, g["scenario.group"], g.config())
	check(err)
	waits, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	from := &reader{done: cancel}
	for waits.Err() == nil {
		check(group.Consume(waits, []string{g["scenario.topic"]}, from))
	}
	check(group.Close())
	demand(from.next == 200, "%d of 200 records came", from.next)
	return ""
}

func (g given) again() string {
	producer := g.producer(g.config())
	defer producer.Close()
	seconds, err := strconv.ParseFloat(g["scenario.seconds"], 64)
	check(err)
	sent := 0
	for end := time.Now().Add(time.Duration(seconds * float64(time.Second))); time.Now().Before(end); sent++ {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: g["scenario.topic"], Value: sarama.StringEncoder("x"),
		})
		check(err)
		time.Sleep(50 * time.Millisecond)
	}
	return strconv.Itoa(sent)
}

func (g given) quota() string {
	config := g.config()
	producer := g.producer(config)
	for range 4 {
		var batch []*sarama.ProducerMessage
		for range 40 {
			value := sarama.StringEncoder(strings.Repeat("x", 1000))
			batch = append(batch, &sarama.ProducerMessage{Topic: g["scenario.topic"], Value: value})
		}
		check(producer.SendMessages(batch))
	}
	longest := int64(0)
	config.MetricRegistry.Each(func(name string, metric any) {
		if told, is := metric.(metrics.Histogram); is && strings.HasPrefix(name, "throttle-time-in-ms") {
			longest = max(longest, told.Max())
		}
	})
	check(producer.Close())
	return strconv.FormatInt(longest, 10)
}

func secured(duty, file string) {
	scenario := readGiven(file)
	work := map[string]func() string{"rights": scenario.rights, "again": scenario.again, "quota": scenario.quota}
	fmt.Printf("did %s: %s\n", duty, work[duty]())
}
