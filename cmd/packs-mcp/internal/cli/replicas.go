package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/audit/chains"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantshared"
	"github.com/packs-mcp/packs-mcp/internal/private"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

// Shared opens what replicas share. It returns nil if nothing is shared. The caller
// closes it.
func Shared(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*store.Mirror, error) {
	if cfg.Store.URL == "" {
		return nil, nil
	}
	keys, err := replicaKeys(cfg)
	if err != nil {
		return nil, err
	}
	s, err := openStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	m, err := store.Follow(ctx, store.Seal(s, keys), logger)
	if err != nil {
		return nil, WithHint(fmt.Errorf("reading the store that replicas share: %w", err), whereStore)
	}
	return m, nil
}

const whereStore = "store.url in the configuration says where it is; without it, a server has its state in its own files"

// openStore opens the store that replicas share.
func openStore(ctx context.Context, cfg *config.Config) (store.Store, error) {
	s, err := store.Open(ctx, store.Options{URL: cfg.Store.URL, Credentials: cfg.Store.Credentials})
	if err != nil {
		return nil, WithHint(fmt.Errorf("opening the store that replicas share: %w", err), whereStore)
	}
	return s, nil
}

// Writer names this process as a writer of the audit log. Processes of other machines
// may write to the same log, if there is a store.
func Writer(cfg *config.Config) string {
	name := fmt.Sprintf("pid-%d-%d", os.Getpid(), time.Now().UnixMilli())
	if host, err := os.Hostname(); err == nil && cfg.Store.URL != "" {
		name = host + "-" + name
	}
	return name
}

// Log opens the audit log for a writer with this name: the files of this user, or
// chains in the store that replicas share. The caller closes it.
func Log(ctx context.Context, cfg *config.Config, name string, logger *slog.Logger) (audit.Writer, error) {
	if cfg.Store.URL == "" {
		log, err := audit.Open(cfg.Audit.Path, audit.Options{MaxSize: cfg.Audit.MaxSize, Server: name, Logger: logger})
		if err != nil {
			return nil, err
		}
		return log, nil
	}
	s, keys, err := SharedLog(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return chains.Open(chains.Options{Store: s, Keys: keys, Server: name, Logger: logger}), nil
}

// SharedLog opens the store that has the audit log. The caller closes it.
func SharedLog(ctx context.Context, cfg *config.Config) (store.Store, chains.Keys, error) {
	keys, err := replicaKeys(cfg)
	if err != nil {
		return nil, chains.Keys{}, err
	}
	s, err := openStore(ctx, cfg)
	if err != nil {
		return nil, chains.Keys{}, err
	}
	return s, chains.KeysOf(keys), nil
}

// LogKeys returns the public keys of the audit log in the store; nil if there is no
// store.
func LogKeys(cfg *config.Config) ([]string, error) {
	if cfg.Store.URL == "" {
		return nil, nil
	}
	keys, err := replicaKeys(cfg)
	if err != nil {
		return nil, err
	}
	return chains.KeysOf(keys).Public(), nil
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
	m, err := Shared(ctx, cfg, logger)
	if err != nil {
		return nil, nil, err
	}
	if m == nil {
		return GrantStore(cfg).Among(people), func() {}, nil
	}
	return SharedGrants(m, people), m.Close, nil
}

// SharedKeys returns the keys that replicas share.
func SharedKeys(cfg *config.Config) (store.Keys, error) { return replicaKeys(cfg) }

// SharedChats returns what was allowed in the chats that replicas have in common.
func SharedChats(m *store.Mirror, people int) *grantshared.Chats {
	return grantshared.NewChats(m, people, nil)
}

// SharedGrants returns the "always" answers that replicas share.
func SharedGrants(m *store.Mirror, people int) *grantshared.Store { return grantshared.New(m, people) }
