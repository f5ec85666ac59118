package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// tries is how often a batch is sent while the collector says that it is
	// busy.
	tries = 3
	// patience is the longest wait for a busy collector.
	patience = 5 * time.Second
	// maxAnswer is how much of an answer is read.
	maxAnswer = 64 << 10
)

var errRefused = errors.New("the collector refused them")

// An uploader posts one signal with OTLP over HTTP. The library's exporter for this
// brings in all of gRPC, which would make this program half again as large.
type uploader struct {
	target *target
	client *http.Client
}

var _ otlptrace.Client = (*uploader)(nil)

func newUploader(t *target) (*uploader, error) {
	// Check once instead of with every batch.
	u := &uploader{target: t}
	if _, err := u.request(context.Background(), nil); err != nil {
		return nil, err
	}
	u.client = &http.Client{
		Timeout: t.timeout,
		Transport: &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			DialContext:     (&net.Dialer{Timeout: t.timeout}).DialContext,
			TLSClientConfig: t.tls, ForceAttemptHTTP2: true,
			MaxIdleConns: 1, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: t.timeout,
		},
		// The headers hold tokens, so they must not follow a redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return u, nil
}

func (u *uploader) Start(context.Context) error { return nil }

func (u *uploader) Stop(context.Context) error {
	u.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends one batch.
func (u *uploader) UploadTraces(ctx context.Context, batch []*tracepb.ResourceSpans) error {
	// This has the same wire format as ExportTraceServiceRequest, whose package
	// needs gRPC.
	return u.upload(ctx, &tracepb.TracesData{ResourceSpans: batch})
}

// upload sends one message.
func (u *uploader) upload(ctx context.Context, m proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding for the collector: %w", err)
	}
	if u.target.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(body); err != nil {
			return fmt.Errorf("compressing for the collector: %w", err)
		}
		if err := w.Close(); err != nil {
			return fmt.Errorf("compressing for the collector: %w", err)
		}
		body = b.Bytes()
	}
	for try := 1; ; try++ {
		wait, err := u.send(ctx, body)
		if err == nil || wait == 0 || try == tries {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// send posts a batch once. If it fails, wait is how long to wait before another
// try; 0: do not try again.
func (u *uploader) send(ctx context.Context, body []byte) (wait time.Duration, _ error) {
	r, err := u.request(ctx, body)
	if err != nil {
		return 0, err
	}
	resp, err := u.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	err = fmt.Errorf("%w: %s", errRefused, resp.Status)
	if text := strings.TrimSpace(string(said[:min(len(said), 200)])); strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") && text != "" {
		err = fmt.Errorf("%w: %q", err, text)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		wait = time.Second
		if s, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil && s > 0 {
			wait = min(time.Duration(s)*time.Second, patience)
		}
	}
	return wait, err
}

func (u *uploader) request(ctx context.Context, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.target.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request for the collector: %w", err)
	}
	r.Header.Set("User-Agent", "packs-mcp")
	for _, h := range u.target.headers {
		r.Header.Set(h[0], h[1])
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if u.target.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	return r, nil
}
