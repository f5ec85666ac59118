package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantshared"
	"github.com/packs-mcp/packs-mcp/internal/private"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

// shared opens what replicas share. It returns nil if nothing is shared.
func shared(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*store.Mirror, error) {
	if cfg.Store.URL == "" {
		return nil, nil
	}
	keys, err := replicaKeys(cfg)
	if err != nil {
		return nil, err
	}
	const hint = "store.url in the configuration says where it is; without it, a server has its state in its own files"
	s, err := store.Open(ctx, store.Options{URL: cfg.Store.URL, Credentials: cfg.Store.Credentials})
	if err != nil {
		return nil, WithHint(fmt.Errorf("opening the store that replicas share: %w", err), hint)
	}
	m, err := store.Follow(ctx, store.Seal(s, keys), logger)
	if err != nil {
		return nil, WithHint(fmt.Errorf("reading the store that replicas share: %w", err), hint)
	}
	return m, nil
}

// maxKeyFile is larger than a file with two keys, in bytes.
const maxKeyFile = 1 << 10

// replicaKeys returns the keys that replicas share.
func replicaKeys(cfg *config.Config) (store.Keys, error) {
	const hint = "openssl rand -hex 32 makes one; all replicas need the same: PACKS_MCP_STORE_KEY, or a file that store.key_file names"
	text := cfg.Store.Key
	if text == "" && cfg.Store.KeyFile != "" {
		file := private.File{Path: cfg.Store.KeyFile, What: "the keys that replicas share", Max: maxKeyFile, Secret: true, Guarded: true}
		data, _, err := file.Read()
		if err != nil {
			return store.Keys{}, WithHint(err, "the file must be yours alone (chmod 600), and so must its folder")
		}
		text = string(data)
	}
	if text == "" {
		return store.Keys{}, WithHint(errors.New("store.url is set, and the key that replicas share is not"), hint)
	}
	keys, err := store.ParseKeys(text)
	if err != nil {
		return store.Keys{}, WithHint(fmt.Errorf("reading the keys that replicas share: %w", err), hint)
	}
	return keys, nil
}

// Grants opens the "always" answers: those of this user, or those that replicas
// share. people is how many people share the room equally. The caller closes them.
func Grants(ctx context.Context, cfg *config.Config, people int, logger *slog.Logger) (_ grants.Store, closeStore func(), err error) {
	m, err := shared(ctx, cfg, logger)
	if err != nil {
		return nil, nil, err
	}
	if m == nil {
		return GrantStore(cfg).Among(people), func() {}, nil
	}
	return grantshared.New(m, people), m.Close, nil
}
