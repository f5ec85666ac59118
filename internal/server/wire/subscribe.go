package wire

import (
	"errors"
	"maps"
	"slices"
)

// maxSubscriptions is how many resources one client, or one stream of
// 2026-07-28, can subscribe to at once.
const maxSubscriptions = 100

var errTooManySubscriptions = errors.New("too many subscriptions; end some of them first")

// SubscribeToResourceErr is called for resources/subscribe, and for each URI of
// a stream. A stream continues without URIs that lead nowhere: its
// acknowledgement lists the others.
func (s *Session) SubscribeToResourceErr(uri string) error {
	err := s.subscribe(uri)
	if s.listenID != nil {
		return nil
	}
	return err
}

// subscribe takes a place before it looks up the resource: no work is done for a
// client without places left.
func (s *Session) subscribe(uri string) error {
	key, err := s.chat.ResourceKey(uri)
	if err != nil {
		return err
	}
	took, err := s.takePlace(key, uri)
	if err != nil || !took {
		return err
	}
	if err := s.chat.Watch(key); err != nil {
		s.UnsubscribeFromResource(uri)
		return err
	}
	return nil
}

// takePlace records a subscription. took is false if the client already has it.
func (s *Session) takePlace(key, uri string) (took bool, err error) {
	p := s.Peer
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.uris[key] != "":
		return false, nil
	case len(p.uris) >= maxSubscriptions || !s.chat.AddSubscriber(key):
		return false, errTooManySubscriptions
	case p.uris == nil:
		p.uris = make(map[string]string)
	}
	p.uris[key] = uri
	return true, nil
}

// SubscribeToResource completes the library's interface; the library calls
// SubscribeToResourceErr instead.
func (s *Session) SubscribeToResource(uri string) { _ = s.SubscribeToResourceErr(uri) }

// UnsubscribeFromResource is called for resources/unsubscribe, and at the end
// of a stream.
func (s *Session) UnsubscribeFromResource(uri string) {
	key, err := s.chat.ResourceKey(uri)
	if err != nil {
		return
	}
	s.Peer.mu.Lock()
	defer s.Peer.mu.Unlock()
	if s.uris[key] == "" {
		return
	}
	delete(s.uris, key)
	s.chat.DropSubscriber(key)
}

// SubscribedResources returns the URIs that the client subscribed to, as it
// spelled them.
func (p *Peer) SubscribedResources() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Values(p.uris))
}

// IsSubscribedToResource reports whether the client subscribed to a URI.
func (s *Session) IsSubscribedToResource(uri string) bool { return s.spelled(uri) != "" }

// spelled returns a URI as the client spelled it when it subscribed; empty if it
// did not.
func (s *Session) spelled(uri string) string {
	key, err := s.chat.ResourceKey(uri)
	if err != nil {
		return ""
	}
	s.Peer.mu.Lock()
	defer s.Peer.mu.Unlock()
	return s.uris[key]
}
