// The duties of tests/support/mqtt_duties.py, by autopaho: HOST PORT PREFIX.
package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

const patience = 60 * time.Second

var (
	server = &url.URL{Scheme: "mqtt", Host: net.JoinHostPort(os.Args[1], os.Args[2])}
	prefix = os.Args[3]
	ctx    = context.Background()
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

func numbers(count int) []string {
	found := make([]string, count)
	for n := range found {
		found[n] = strconv.Itoa(n)
	}
	return found
}

// A connection and all that it was sent.
type client struct {
	*autopaho.ConnectionManager
	connack *paho.Connack
	wire    net.Conn
	lock    sync.Mutex
	got     []*paho.Publish
}

func (one *client) texts() []string {
	one.lock.Lock()
	defer one.lock.Unlock()
	found := make([]string, len(one.got))
	for n, message := range one.got {
		found[n] = string(message.Payload)
	}
	return found
}

func (one *client) until(what string, count int) []string {
	for deadline := time.Now().Add(patience); len(one.texts()) < count; time.Sleep(10 * time.Millisecond) {
		demand(time.Now().Before(deadline), "%s: not in time: %v", what, one.texts())
	}
	return one.texts()
}

// expiry: seconds that the session lasts; 0: a clean start.
func begin(id string, expiry uint32, will *paho.WillMessage) *client {
	one := &client{}
	up := make(chan *paho.Connack, 1)
	config := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{server},
		KeepAlive:                     20,
		CleanStartOnInitialConnection: expiry == 0,
		SessionExpiryInterval:         expiry,
		ReconnectBackoff: func(int) time.Duration {
			if one.wire == nil {
				return 0
			}
			return time.Hour // one that was cut does not come again, and has no second will
		},
		AttemptConnection: func(ctx context.Context, _ autopaho.ClientConfig, at *url.URL) (net.Conn, error) {
			var err error
			one.wire, err = (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
			return one.wire, err
		},
		OnConnectionUp: func(_ *autopaho.ConnectionManager, connack *paho.Connack) { up <- connack },
		OnConnectError: check,
		WillMessage:    will,
		ClientConfig: paho.ClientConfig{
			ClientID: strings.ReplaceAll(prefix+"-"+id, "/", "-"),
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(came paho.PublishReceived) (bool, error) {
				one.lock.Lock()
				defer one.lock.Unlock()
				one.got = append(one.got, came.Packet)
				return true, nil
			}},
		},
	}
	if id == "" {
		config.ClientConfig.ClientID = ""
	}
	var err error
	one.ConnectionManager, err = autopaho.NewConnection(ctx, config)
	check(err)
	select {
	case one.connack = <-up:
	case <-time.After(patience):
		demand(false, "%s: no connection", id)
	}
	return one
}

func (one *client) end() {
	ending, done := context.WithTimeout(ctx, patience)
	defer done()
	check(one.Disconnect(ending))
}

func (one *client) subscribe(filter string, qos byte) {
	_, err := one.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter, QoS: qos}}})
	check(err)
}

func (one *client) send(topic, text string, qos byte, retain bool) {
	_, err := one.Publish(ctx, &paho.Publish{Topic: topic, QoS: qos, Retain: retain, Payload: []byte(text)})
	check(err)
}

func connect() {
	one := begin("connect", 0, nil)
	demand(!one.connack.SessionPresent, "a session that was never made")
	one.end()
	unnamed := begin("", 0, nil)
	demand(unnamed.connack.Properties.AssignedClientID != "", "no client id was assigned")
	unnamed.end()
}

func quality(qos byte) {
	listener, sender := begin("listener", 0, nil), begin("sender", 0, nil)
	listener.subscribe(prefix+"/qos/+", qos)
	for _, text := range numbers(30) {
		sender.send(fmt.Sprintf("%s/qos/%d", prefix, qos), text, qos, false)
	}
	found := listener.until("its messages", 30)
	demand(slices.Equal(found, numbers(30)), "%v", found)
	for _, message := range listener.got {
		demand(message.QoS == qos && !message.Retain, "a flag is wrong: %v", message)
	}
	listener.end()
	sender.end()
}

func retained() {
	sender, topic := begin("sender", 0, nil), prefix+"/retained"
	sender.send(topic, "first", 1, true)
	sender.send(topic, "last", 1, true)
	late := begin("late", 0, nil)
	late.subscribe(topic, 1)
	found := late.until("the retained message", 1)
	demand(found[0] == "last" && late.got[0].Retain, "%v", found)
	sender.send(topic, "", 1, true)
	later := begin("later", 0, nil)
	later.subscribe(topic, 1)
	sender.send(topic, "live", 1, false)
	found = later.until("a live message", 1)
	demand(found[0] == "live" && !later.got[0].Retain, "%v", found)
	sender.end()
	late.end()
	later.end()
}

func will() {
	witness, topic := begin("witness", 0, nil), prefix+"/will"
	witness.subscribe(topic, 1)
	begin("polite", 0, &paho.WillMessage{Topic: topic, QoS: 1, Payload: []byte("polite")}).end()
	broken := begin("broken", 0, &paho.WillMessage{Topic: topic, QoS: 1, Payload: []byte("broken")})
	check(broken.wire.Close())
	found := witness.until("the will", 1)
	demand(found[0] == "broken", "%v", found)
	witness.end()
}

func resume() {
	first := begin("lasting", 300, nil)
	demand(!first.connack.SessionPresent, "a session before the first one")
	first.subscribe(prefix+"/resumed", 2)
	first.end()
	sender := begin("sender", 0, nil)
	sent := []string{}
	for _, qos := range []byte{1, 2} {
		for _, number := range numbers(10) {
			text := fmt.Sprintf("%d-%s", qos, number)
			sent = append(sent, text)
			sender.send(prefix+"/resumed", text, qos, false)
		}
	}
	again := begin("lasting", 300, nil)
	demand(again.connack.SessionPresent, "the session is gone")
	found := again.until("what came meanwhile", len(sent))
	demand(slices.Equal(found, sent), "%v", found)
	again.end()
	clean := begin("lasting", 0, nil)
	demand(!clean.connack.SessionPresent, "a clean start has kept the session")
	clean.end()
	sender.end()
}

func shared() {
	members := []*client{begin("member-1", 0, nil), begin("member-2", 0, nil)}
	for _, one := range members {
		one.subscribe("$share/"+strings.ReplaceAll(prefix, "/", "-")+"/"+prefix+"/shared", 1)
	}
	sender := begin("sender", 0, nil)
	for _, text := range numbers(60) {
		sender.send(prefix+"/shared", text, 1, false)
	}
	all := func() []string { return append(members[0].texts(), members[1].texts()...) }
	for deadline := time.Now().Add(patience); len(all()) < 60; time.Sleep(10 * time.Millisecond) {
		demand(time.Now().Before(deadline), "not in time: %v", all())
	}
	expected, found := numbers(60), all()
	slices.Sort(expected)
	slices.Sort(found)
	demand(slices.Equal(expected, found), "%v", found)
	for _, one := range append(members, sender) {
		demand(one == sender || len(one.texts()) > 0, "one member got nothing")
		one.end()
	}
}

func properties() {
	listener, sender := begin("listener", 0, nil), begin("sender", 0, nil)
	listener.subscribe(prefix+"/properties", 1)
	expiry, format := uint32(300), byte(1)
	given := &paho.PublishProperties{
		ContentType: "application/json", ResponseTopic: prefix + "/answers", CorrelationData: []byte{0, 1, 255},
		MessageExpiry: &expiry, PayloadFormat: &format,
		User: paho.UserProperties{{Key: "unit", Value: "celsius"}, {Key: "unit", Value: "kelvin"}},
	}
	_, err := sender.Publish(ctx, &paho.Publish{
		Topic: prefix + "/properties", QoS: 1, Payload: []byte("{}"), Properties: given,
	})
	check(err)
	listener.until("the message with properties", 1)
	found := listener.got[0].Properties
	demand(found.ContentType == given.ContentType && found.ResponseTopic == given.ResponseTopic, "%v", found)
	demand(slices.Equal(found.CorrelationData, given.CorrelationData) && *found.PayloadFormat == 1, "%v", found)
	demand(slices.Equal(found.User, given.User), "%v", found)
	demand(*found.MessageExpiry > 200 && *found.MessageExpiry <= 300, "%v", *found.MessageExpiry)
	listener.end()
	sender.end()
}

func main() {
	for _, duty := range []struct {
		name string
		run  func()
	}{
		{"connect", connect},
		{"QoS 0", func() { quality(0) }}, {"QoS 1", func() { quality(1) }}, {"QoS 2", func() { quality(2) }},
		{"retained", retained}, {"will", will}, {"session resume", resume}, {"shared subscription", shared},
		{"properties", properties},
	} {
		duty.run()
		fmt.Printf("did %s:\n", duty.name)
	}
}
