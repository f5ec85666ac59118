package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsStore keeps entries in one stream, the newest message of each subject, and
// chains in another, where no single message can be deleted.
type natsStore struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	entries jetstream.Stream
	chains  jetstream.Stream
	name    string
	mark    string // the subject of this store's own marks
}

// goneHeader marks a message that deletes its subject's entry.
const goneHeader = "Packs-Mcp-Gone"

// markTime is how long a mark stays; a newer one replaces it.
const markTime = time.Hour

// openNATS opens the store at SCHEME://REST; see [Options].
func openNATS(ctx context.Context, scheme, rest, credentials string) (Store, error) {
	hosts, user := rest, ""
	end := strings.IndexAny(hosts+"/", "/?")
	hosts, rest = hosts[:end], rest[end:]
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		user, hosts = hosts[:at+1], hosts[at+1:]
	}
	u, err := url.Parse(rest)
	unreadable := errors.New("the URL of the NATS store cannot be read") // the original error may contain a password
	if err != nil || hosts == "" {
		return nil, unreadable
	}
	replicas := 1
	if r := u.Query().Get("replicas"); r != "" {
		n, err := strconv.Atoi(r)
		if err != nil || n < 1 || n > 5 {
			return nil, fmt.Errorf("replicas=%q is not a number from 1 to 5", r)
		}
		replicas = n
	}
	name := strings.Trim(u.Path, "/")
	if name == "" {
		name = "packs-mcp"
	}
	if strings.ContainsAny(name, "/. *>") {
		return nil, errors.New("the name of the store's streams, behind the hosts of its URL, has a character that it cannot have; a / in a password is written %2F")
	}
	var servers []string
	for host := range strings.SplitSeq(hosts, ",") {
		server := scheme + "://" + user + host
		if _, err := url.Parse(server); err != nil {
			return nil, unreadable
		}
		servers = append(servers, server)
	}
	options := []nats.Option{
		nats.Name("packs-mcp"), nats.Timeout(opTime), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1), // writes fail at once while the server is away
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
	}
	if credentials != "" {
		options = append(options, nats.UserCredentials(credentials))
	}
	// Not as one text: a password may contain a comma.
	options = append(options, func(o *nats.Options) error { o.Servers = servers; return nil })
	conn, err := nats.Connect("", options...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", away(err))
	}
	s := &natsStore{conn: conn, name: name, mark: name + ".marks." + strings.ToLower(rand.Text()[:16])}
	if err := s.prepare(ctx, replicas); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// prepare makes the streams, if they are missing.
func (s *natsStore) prepare(ctx context.Context, replicas int) (err error) {
	if s.js, err = jetstream.New(s.conn); err != nil {
		return err
	}
	s.entries, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: s.name, Subjects: []string{s.name + ".entries.>", s.name + ".marks.*"}, MaxMsgsPerSubject: 1, Storage: jetstream.FileStorage, Replicas: replicas,
		AllowMsgTTL: true, SubjectDeleteMarkerTTL: goneTime, Discard: jetstream.DiscardNew, DenyPurge: true,
	})
	if err == nil {
		s.chains, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: s.name + "-chains", Subjects: []string{s.name + ".chains.>"}, Storage: jetstream.FileStorage, Replicas: replicas,
			DenyDelete: true, // Trim purges the beginning of a chain
		})
	}
	if err != nil {
		return fmt.Errorf("making the streams of the store: %w", err)
	}
	return nil
}

func (s *natsStore) Close() { s.conn.Close() }

func (s *natsStore) entry(key string) string   { return s.name + ".entries." + key }
func (s *natsStore) chain(chain string) string { return s.name + ".chains." + chain }

// last returns the newest message of a subject.
func (s *natsStore) last(ctx context.Context, stream jetstream.Stream, subject string) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	m, err := stream.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, ErrNotFound
	case err != nil:
		return nil, away(err)
	}
	return m, nil
}

// isGone reports whether a message says that there is no entry: it was deleted, or it
// expired and the server removed it.
func isGone(h nats.Header) bool {
	return h.Get(goneHeader) != "" || h.Get(jetstream.MarkerReasonHeader) != ""
}

// publish writes a message if the newest one of its subject has the sequence number
// after.
func (s *natsStore) publish(ctx context.Context, m *nats.Msg, after uint64, options ...jetstream.PublishOpt) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	ack, err := s.js.PublishMsg(ctx, m, append(options, jetstream.WithExpectLastSequencePerSubject(after))...)
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return 0, ErrConflict
	}
	if err != nil {
		return 0, away(err)
	}
	return ack.Sequence, nil
}

func (s *natsStore) Get(ctx context.Context, key string) (Entry, error) {
	m, err := s.last(ctx, s.entries, s.entry(key))
	if err != nil {
		return Entry{}, err
	}
	if isGone(m.Header) {
		return Entry{}, ErrNotFound
	}
	return Entry{Key: key, Value: m.Data, Rev: m.Sequence}, nil
}

func (s *natsStore) Put(ctx context.Context, key string, value []byte, rev uint64, ttl time.Duration) (uint64, error) {
	var options []jetstream.PublishOpt
	if ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(max(ttl.Round(time.Second), time.Second))) // the server counts whole seconds
	}
	made := func() *nats.Msg { return &nats.Msg{Subject: s.entry(key), Data: value} }
	now, err := s.publish(ctx, made(), rev, options...)
	if rev != 0 || !errors.Is(err, ErrConflict) {
		return now, err
	}
	// A deleted entry leaves a message; a new entry comes after it.
	m, err := s.last(ctx, s.entries, s.entry(key))
	switch {
	case errors.Is(err, ErrNotFound):
		return s.publish(ctx, made(), 0, options...)
	case err != nil:
		return 0, err
	case !isGone(m.Header):
		return 0, ErrConflict
	}
	return s.publish(ctx, made(), m.Sequence, options...)
}

func (s *natsStore) Delete(ctx context.Context, key string, rev uint64) error {
	m := &nats.Msg{Subject: s.entry(key), Header: nats.Header{goneHeader: {"1"}}}
	_, err := s.publish(ctx, m, rev, jetstream.WithMsgTTL(goneTime))
	return err
}

// Mark writes a message: only a write shows that most of the servers agree on what comes
// before it. Nobody else watches its subject.
func (s *natsStore) Mark(ctx context.Context, seen uint64) (rev uint64, back bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	ack, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: s.mark}, jetstream.WithMsgTTL(markTime))
	if err != nil {
		return 0, false, away(err)
	}
	return ack.Sequence, ack.Sequence <= seen, nil
}

func (s *natsStore) Watch(ctx context.Context, f func(Change)) error {
	broken := s.conn.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	defer s.conn.RemoveStatusListener(broken)
	making, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	consumer, err := s.js.OrderedConsumer(making, s.name, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{s.entry(">"), s.mark}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return away(err)
	}
	info, err := consumer.Info(making)
	if err != nil {
		return away(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return away(err)
	}
	// A reader stops when the connection breaks: it cannot know what it has missed.
	stopped := make(chan struct{})
	defer func() { messages.Stop(); <-stopped }()
	done := make(chan struct{})
	defer close(done)
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-broken:
		case <-done:
		}
		messages.Stop()
	}()
	if !s.conn.IsConnected() {
		return away(nats.ErrConnectionReconnecting)
	}
	synced := info.NumPending == 0
	if synced {
		f(Change{Synced: true})
	}
	prefix := s.entry("")
	for {
		m, err := messages.Next()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return away(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return away(err)
		}
		c := Change{Entry: Entry{Key: strings.TrimPrefix(m.Subject(), prefix), Value: m.Data(), Rev: meta.Sequence.Stream}, Gone: isGone(m.Headers())}
		switch {
		case m.Subject() == s.mark:
			c = Change{Entry: Entry{Rev: c.Rev}}
		case c.Gone:
			c.Value = nil
		}
		f(c)
		if !synced && meta.NumPending == 0 {
			synced = true
			f(Change{Synced: true})
		}
	}
}

func (s *natsStore) Append(ctx context.Context, chain string, prev uint64, block []byte) (uint64, error) {
	return s.publish(ctx, &nats.Msg{Subject: s.chain(chain), Data: block}, prev)
}

func (s *natsStore) Last(ctx context.Context, chain string) (uint64, []byte, error) {
	m, err := s.last(ctx, s.chains, s.chain(chain))
	if err != nil {
		return 0, nil, err
	}
	return m.Sequence, m.Data, nil
}

func (s *natsStore) Read(ctx context.Context, chain string, after uint64, f func(pos uint64, block []byte) error) error {
	end, _, err := s.Last(ctx, chain)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for at := after; at < end; {
		next, cancel := context.WithTimeout(ctx, opTime)
		m, err := s.chains.GetMsg(next, at+1, jetstream.WithGetMsgSubject(s.chain(chain)))
		cancel()
		if err != nil {
			return away(err)
		}
		if err := f(m.Sequence, m.Data); err != nil {
			return err
		}
		at = m.Sequence
	}
	return nil
}

func (s *natsStore) Chains(ctx context.Context) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	info, err := s.chains.Info(ctx, jetstream.WithSubjectFilter(s.chain(">")))
	if err != nil {
		return nil, away(err)
	}
	all := make(map[string]uint64, len(info.State.Subjects))
	for subject, messages := range info.State.Subjects {
		all[strings.TrimPrefix(subject, s.chain(""))] = messages
	}
	return all, nil
}

func (s *natsStore) Trim(ctx context.Context, chain string, pos uint64) error {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	if err := s.chains.Purge(ctx, jetstream.WithPurgeSubject(s.chain(chain)), jetstream.WithPurgeSequence(pos+1)); err != nil {
		return away(err)
	}
	return nil
}
