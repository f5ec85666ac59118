package subscriptions_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
)

// A client subscribes to a file under two spellings.
func Example() {
	s := subscriptions.NewSet(subscriptions.Options{
		Pace: subscriptions.NewPace(subscriptions.Every),
		Begin: func() subscriptions.Looker {
			return func(u address.URI) (subscriptions.Look, error) {
				fmt.Println("looking at", u)
				return subscriptions.Look{}, nil
			}
		},
		Tell: func(uri string) { fmt.Println(uri, "changed") },
	})
	defer s.Close()
	for _, uri := range []string{"skill://notes/a.md", "skill://notes/%61.md"} {
		key, err := s.ResourceKey(uri)
		if err != nil || !s.AddSubscriber(key) {
			fmt.Println("not taken:", err)
			return
		}
		if err := s.Watch(key); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// looking at skill://notes/a.md
	// looking at skill://notes/a.md
}
