package queue

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"
)

func newTestStates(t testing.TB, now *time.Time) *states {
	t.Helper()
	s, err := newStates(func() time.Time { return *now }, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGreedyChat: a chat that asks and never answers loses only its own questions.
func TestGreedyChat(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newTestStates(t, &now)
	mint := func(chat string) string {
		t.Helper()
		state, _, err := s.mint("", chat, "call", now.Add(10*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Millisecond)
		return state
	}
	honest := mint("honest")
	first := mint("greedy")
	var last string
	for range maxOpen + 100 {
		last = mint("greedy")
	}
	later := mint("late")
	if n := len(s.open); n > maxOpen {
		t.Errorf("%d questions wait, want at most %d", n, maxOpen)
	}
	for chat, state := range map[string]string{"honest": honest, "late": later, "greedy": last} {
		if _, err := s.redeem(state, "", chat, "call"); err != nil {
			t.Errorf("%s, the last: redeem() = %v", chat, err)
		}
	}
	if _, err := s.redeem(first, "", "greedy", "call"); !errors.Is(err, ErrSpent) {
		t.Errorf("greedy, the first: redeem() = %v, want %v", err, ErrSpent)
	}
}

// TestOldQuestionsMakeRoom: expired questions are dropped first.
func TestOldQuestionsMakeRoom(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newTestStates(t, &now)
	for i := range maxOpen {
		if _, _, err := s.mint("", fmt.Sprint("chat ", i), "call", now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Minute + time.Second)
	if _, _, err := s.mint("", "chat", "call", now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n := len(s.open); n != 1 {
		t.Errorf("%d questions wait, want 1", n)
	}
}

// TestSpentStatesAreForgotten: nothing is kept about a question that was answered.
func TestSpentStatesAreForgotten(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newTestStates(t, &now)
	for range maxOpen + 100 {
		state, _, err := s.mint("", "chat", "call", now.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.redeem(state, "", "chat", "call"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.open); n != 0 {
		t.Errorf("%d questions wait, want 0", n)
	}
}

// TestMachineSlept: while the machine sleeps the monotonic clock stands still, but
// that does not extend the life of a state.
func TestMachineSlept(t *testing.T) {
	start := time.Now() // with a monotonic reading
	now := start
	s := newTestStates(t, &now)
	state, _, err := s.mint("", "chat", "call", start.Add(10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	now = start.Round(0).Add(11 * time.Minute)
	if _, err := s.redeem(state, "", "chat", "call"); !errors.Is(err, ErrSpent) {
		t.Errorf("redeem() = %v, want %v", err, ErrSpent)
	}
}

// TestStatesOfOnePerson: states that nobody redeems do not void another person's.
func TestStatesOfOnePerson(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s, err := newStates(func() time.Time { return now }, 2)
	if err != nil {
		t.Fatal(err)
	}
	mint := func(person, chat string) string {
		t.Helper()
		now = now.Add(time.Millisecond)
		state, _, err := s.mint(person, chat, "call", now.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	honest := []string{mint("honest", "1"), mint("honest", "1"), mint("honest", "1")}
	for i := range maxOpen/2 + 100 {
		mint("greedy", fmt.Sprint(i)) // one in each chat: fewer than the honest chat has
	}
	for range maxOpen / 4 {
		mint("greedy", "1") // with the same name as the honest chat
	}
	honest = append(honest, mint("honest", "1"))
	for i, state := range honest {
		if _, err := s.redeem(state, "honest", "1", "call"); err != nil {
			t.Errorf("state %d of the other person: %v", i, err)
		}
	}
}

// FuzzRedeem: only what was minted is redeemed, and only once.
func FuzzRedeem(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	f.Add("", "call", 0, byte(0))
	f.Add("x.y", "call", 3, byte(1))
	f.Add("eyJuIjoiIiwiYyI6ImNhbGwiLCJlIjo5OTk5OTk5OTk5fQ.", "call", 40, byte(0x80))
	f.Fuzz(func(t *testing.T, forged, facts string, at int, flip byte) {
		call := fmt.Sprintf("%x", sha256.Sum256([]byte(facts)))
		s := newTestStates(t, &now)
		state, _, err := s.mint("", "chat", call, now.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.redeem(forged, "", "chat", call); err == nil {
			t.Fatalf("redeem(%q) accepts", forged)
		}
		changed := []byte(state)
		if at < 0 {
			at = -(at + 1)
		}
		changed[at%len(changed)] ^= flip
		if _, err := s.redeem(string(changed), "", "chat", call); (err == nil) != (flip == 0) {
			t.Fatalf("redeem(%q), changed from %q, = %v", changed, state, err)
		}
		if _, err := s.redeem(state, "", "chat", call); (err == nil) != (flip != 0) {
			t.Fatalf("redeem(%q) = %v after a flip of %#x", state, err, flip)
		}
		if _, err := s.redeem(state, "", "chat", call); !errors.Is(err, ErrSpent) {
			t.Fatalf("redeem(%q) again = %v, want %v", state, err, ErrSpent)
		}
	})
}
