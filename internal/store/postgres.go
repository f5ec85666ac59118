package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgresStore keeps entries and chains in tables. Each write of an entry takes the
// next revision from one row, which stays locked until the write is committed: so
// revisions become visible in order, and a watcher that has read one has missed none
// before it.
type postgresStore struct {
	pool *pgxpool.Pool
}

// schema makes the tables. A deleted entry stays for a while, so that watchers notice
// it.
const schema = `
create table if not exists packs_mcp_revision (one boolean primary key default true check (one), n bigint not null);
insert into packs_mcp_revision (n) values (0) on conflict do nothing;
create table if not exists packs_mcp_entries (
	key text primary key, value bytea not null, rev bigint not null, expires timestamptz, gone boolean not null default false);
create index if not exists packs_mcp_entries_rev on packs_mcp_entries (rev);
create table if not exists packs_mcp_chains (
	chain text not null, pos bigint not null, block bytea not null, at timestamptz not null default clock_timestamp(), primary key (chain, pos));
`

const (
	// nextRev takes the next revision.
	nextRev = `with r as (update packs_mcp_revision set n = n + 1 returning n) `
	// notified tells the watchers when the transaction is committed.
	notified = `, pg_notify('packs_mcp', '')`
	until    = `case when $3::bigint > 0 then clock_timestamp() + $3::bigint * interval '1 microsecond' end`
	alive    = `not e.gone and (e.expires is null or e.expires > clock_timestamp())`

	createEntry = nextRev + `insert into packs_mcp_entries as e (key, value, rev, expires) select $1, $2, r.n, ` + until + ` from r
		on conflict (key) do update set value = excluded.value, rev = excluded.rev, expires = excluded.expires, gone = false
		where not (` + alive + `) returning rev` + notified
	replaceEntry = nextRev + `update packs_mcp_entries e set value = $2, rev = r.n, expires = ` + until + ` from r
		where e.key = $1 and e.rev = $4 and ` + alive + ` returning e.rev` + notified
	deleteEntry = nextRev + `update packs_mcp_entries e set value = '', gone = true, rev = r.n, expires = clock_timestamp() + $3::bigint * interval '1 microsecond'
		from r where e.key = $1 and e.rev = $2 and ` + alive + ` returning e.rev` + notified
	// expireEntries deletes what has expired, one entry at a time: each has a
	// revision of its own.
	expireEntries = nextRev + `update packs_mcp_entries e set value = '', gone = true, rev = r.n, expires = clock_timestamp() + $1::bigint * interval '1 microsecond'
		from r where e.key = (select key from packs_mcp_entries where not gone and expires <= clock_timestamp() limit 1)
		and not e.gone and e.expires <= clock_timestamp() returning e.rev` + notified
	appendBlock = `insert into packs_mcp_chains (chain, pos, block) select $1::text, $2::bigint + 1, $3::bytea
		where case when $2::bigint = 0 then not exists (select from packs_mcp_chains where chain = $1)
			else exists (select from packs_mcp_chains where chain = $1::text and pos = $2::bigint) end
		on conflict do nothing returning pos`
)

func openPostgres(ctx context.Context, url string) (Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the URL of the PostgreSQL store cannot be read") // the error has the URL
	}
	config.ConnConfig.ConnectTimeout = opTime
	config.ConnConfig.RuntimeParams["application_name"] = "packs-mcp"
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", away(err))
	}
	s := &postgresStore{pool: pool}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// Several replicas may start at once.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('packs_mcp'))`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, schema)
		return err
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("making the tables of the store: %w", away(err))
	}
	return s, nil
}

func (s *postgresStore) Close() { s.pool.Close() }

// one runs a statement that returns one number. Without a row, it returns none.
func (s *postgresStore) one(ctx context.Context, none error, sql string, args ...any) (n uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return 0, away(err)
	}
	defer rows.Close()
	found := rows.Next()
	if found {
		values, err := rows.Values()
		if err != nil {
			return 0, away(err)
		}
		is, _ := values[0].(int64)
		n = uint64(is)
	}
	rows.Close()
	switch {
	case rows.Err() != nil:
		return 0, away(rows.Err())
	case !found:
		return 0, none
	}
	return n, nil
}

func (s *postgresStore) Get(ctx context.Context, key string) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	e := Entry{Key: key}
	err := s.pool.QueryRow(ctx, `select value, rev from packs_mcp_entries e where key = $1 and `+alive, key).Scan(&e.Value, &e.Rev)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Entry{}, ErrNotFound
	case err != nil:
		return Entry{}, away(err)
	}
	return e, nil
}

func (s *postgresStore) Put(ctx context.Context, key string, value []byte, rev uint64, ttl time.Duration) (uint64, error) {
	if rev == 0 {
		return s.one(ctx, ErrConflict, createEntry, key, filled(value), ttl.Microseconds())
	}
	return s.one(ctx, ErrConflict, replaceEntry, key, filled(value), ttl.Microseconds(), int64(rev))
}

// filled returns bytes that are not nil, which PostgreSQL would take for null.
func filled(b []byte) []byte { return append([]byte{}, b...) }

func (s *postgresStore) Delete(ctx context.Context, key string, rev uint64) error {
	_, err := s.one(ctx, ErrConflict, deleteEntry, key, int64(rev), goneTime.Microseconds())
	return err
}

// Mark reads the newest revision. Each write locks the row of the revision until it is
// committed, so the newest is not below any write before the call. A standby may lag, so it
// does not count. Failed writes take revisions, too, which no entry has.
func (s *postgresStore) Mark(ctx context.Context, seen uint64) (rev uint64, back bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	var taken uint64
	err = s.pool.QueryRow(ctx, `select n, coalesce((select max(rev) from packs_mcp_entries), 0) from packs_mcp_revision where not pg_is_in_recovery()`).Scan(&taken, &rev)
	if err != nil {
		return 0, false, away(err)
	}
	return rev, taken < seen, nil
}

// lookEvery is the least time between two looks at what has changed. Under load, a look
// finds several changes; it costs the engine about as much as one of them.
const lookEvery = 10 * time.Millisecond

// sweepEvery is how often a watcher looks for expired entries and checks its
// connection.
const sweepEvery = 2 * time.Second

func (s *postgresStore) Watch(ctx context.Context, f func(Change)) error {
	making, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	pooled, err := s.pool.Acquire(making)
	if err != nil {
		return away(err)
	}
	conn := pooled.Hijack() // it listens, so it cannot be shared
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTime)
		defer cancel()
		_ = conn.Close(closing) // the server notices either way
	}()
	if _, err := conn.Exec(making, `listen packs_mcp`); err != nil {
		return away(err)
	}
	var seen uint64
	read := func(sql string, args ...any) error {
		reading, cancel := context.WithTimeout(ctx, opTime)
		defer cancel()
		rows, err := conn.Query(reading, sql, args...)
		if err != nil {
			return away(err)
		}
		var c Change
		_, err = pgx.ForEachRow(rows, []any{&c.Key, &c.Value, &c.Rev, &c.Gone}, func() error {
			seen = max(seen, c.Rev)
			if c.Gone {
				c.Value = nil
			}
			f(c)
			c.Value = nil
			return nil
		})
		if err != nil {
			return away(err)
		}
		return nil
	}
	const columns = `select key, value, rev, gone from packs_mcp_entries e where `
	if err := read(columns + alive + ` order by rev`); err != nil {
		return err
	}
	// A deletion may be newer than all entries.
	f(Change{Synced: true})
	next := time.Now().Add(sweepEvery) // other changes do not delay it
	over, end := context.WithCancel(ctx)
	end() // it waits for nothing, and returns what is there
	for {
		if err := read(columns+`rev > $1 order by rev`, int64(seen)); err != nil {
			return err
		}
		again := time.After(lookEvery)
		waiting, cancel := context.WithDeadline(ctx, next)
		_, err := conn.WaitForNotification(waiting)
		idle := waiting.Err() != nil
		cancel()
		if err == nil {
			select {
			case <-again:
			case <-ctx.Done():
			}
		}
		// One look serves all notifications that have come.
		for err == nil {
			if _, none := conn.WaitForNotification(over); none != nil {
				break
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !idle:
			return away(err)
		case !time.Now().Before(next):
			if err := s.sweep(ctx); err != nil {
				return err
			}
			next = time.Now().Add(sweepEvery)
		}
	}
}

// sweep deletes expired entries, and forgets those that were deleted long ago.
func (s *postgresStore) sweep(ctx context.Context) error {
	var err error
	for err == nil {
		_, err = s.one(ctx, ErrNotFound, expireEntries, goneTime.Microseconds())
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	if _, err := s.pool.Exec(ctx, `delete from packs_mcp_entries where gone and expires <= clock_timestamp()`); err != nil {
		return away(err)
	}
	return nil
}

func (s *postgresStore) Append(ctx context.Context, chain string, prev uint64, block []byte) (uint64, error) {
	return s.one(ctx, ErrConflict, appendBlock, chain, int64(prev), filled(block))
}

func (s *postgresStore) Last(ctx context.Context, chain string) (pos uint64, block []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	err = s.pool.QueryRow(ctx, `select pos, block from packs_mcp_chains where chain = $1 order by pos desc limit 1`, chain).Scan(&pos, &block)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, nil, ErrNotFound
	case err != nil:
		return 0, nil, away(err)
	}
	return pos, block, nil
}

// readAtOnce is how many blocks Read fetches at a time.
const readAtOnce = 200

func (s *postgresStore) Read(ctx context.Context, chain string, after uint64, f func(pos uint64, block []byte) error) error {
	for at := after; ; {
		next, cancel := context.WithTimeout(ctx, opTime)
		rows, err := s.pool.Query(next, `select pos, block from packs_mcp_chains where chain = $1 and pos > $2 order by pos limit $3`, chain, int64(at), readAtOnce)
		if err != nil {
			cancel()
			return away(err)
		}
		type row struct {
			Pos   uint64
			Block []byte
		}
		blocks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		cancel()
		if err != nil {
			return away(err)
		}
		for _, b := range blocks {
			if err := f(b.Pos, b.Block); err != nil {
				return err
			}
			at = b.Pos
		}
		if len(blocks) < readAtOnce {
			return nil
		}
	}
}

// lastOfChains looks up each chain in the index, so that its cost does not grow with
// the number of blocks.
const lastOfChains = `with recursive names as (
	(select chain from packs_mcp_chains order by chain limit 1)
	union all
	select (select chain from packs_mcp_chains c where c.chain > names.chain order by chain limit 1) from names where names.chain is not null)
	select chain, (select max(pos) from packs_mcp_chains c where c.chain = names.chain) from names where chain is not null`

func (s *postgresStore) Chains(ctx context.Context) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	rows, err := s.pool.Query(ctx, lastOfChains)
	if err != nil {
		return nil, away(err)
	}
	all := make(map[string]uint64)
	var name string
	var last uint64
	if _, err := pgx.ForEachRow(rows, []any{&name, &last}, func() error { all[name] = last; return nil }); err != nil {
		return nil, away(err)
	}
	return all, nil
}

func (s *postgresStore) Trim(ctx context.Context, chain string, pos uint64) error {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	if _, err := s.pool.Exec(ctx, `delete from packs_mcp_chains where chain = $1 and pos <= $2`, chain, int64(pos)); err != nil {
		return away(err)
	}
	return nil
}
