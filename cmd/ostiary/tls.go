package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateAge is how long a certificate is used before its file is looked at
// again: a renewal needs no restart.
const certificateAge = time.Minute

// certificate is a key pair that follows its files.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	pair     *tls.Certificate
	modified time.Time
	checked  time.Time
}

// newTLSConfig reads the key pair once, so that a wrong one fails the start.
func newTLSConfig(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("tls_cert, tls_key: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

func (c *certificate) load() error {
	info, err := os.Stat(c.certFile)
	if err != nil {
		return err
	}
	c.checked = time.Now()
	if c.pair != nil && info.ModTime().Equal(c.modified) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.pair, c.modified = &pair, info.ModTime()
	return nil
}

// get returns the current certificate; when the new files cannot be read the
// old one stays.
func (c *certificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < certificateAge {
		return c.pair, nil
	}
	if err := c.load(); err != nil {
		c.checked = time.Now()
		c.log.ErrorContext(hello.Context(), "certificate was not read again", slog.String("event", "tls.reload_failed"),
			slog.String("cause", err.Error()))
	}
	return c.pair, nil
}
