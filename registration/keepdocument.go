package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// confirm keeps that the document is as doc says, and returns the client. A
// process that read another one meanwhile knows better: its row stays.
func (d *Documents) confirm(ctx context.Context, doc ClientDocument) (c *Client, err error) {
	err = d.o.Tx.InTx(ctx, func(ctx context.Context) error {
		held, err := d.o.Clients.HoldClient(ctx, doc.ClientID)
		if err != nil {
			return err
		}
		c = &held
		kept, err := d.o.Documents.GetClientDocument(ctx, doc.ClientID)
		if err != nil || kept.Hash != doc.Hash {
			return err
		}
		return d.o.Documents.PutClientDocument(ctx, doc)
	})
	if err != nil {
		return nil, fmt.Errorf("confirm client metadata document: %w", err)
	}
	return c, nil
}

// goodCopy is the row after a success.
func (d *Documents) goodCopy(doc ClientDocument, res *netguard.Response) ClientDocument {
	now := d.o.Now()
	if doc.FirstSeenAt.IsZero() {
		doc.FirstSeenAt = now
	}
	doc.FetchedAt, doc.TriedAt, doc.FreshUntil = now, now, now.Add(freshFor(res.Header))
	doc.RetryAt, doc.Failures, doc.Problem, doc.Failure = time.Time{}, 0, "", ""
	return doc
}

// keep writes the document and the client it describes. A process that made the
// client meanwhile was faster; then this is a change of it.
func (d *Documents) keep(ctx context.Context, doc ClientDocument, m ClientMetadata) (*Client, error) {
	c, err := d.tryKeep(ctx, doc, m)
	if errors.Is(err, store.ErrExists) {
		c, err = d.tryKeep(ctx, doc, m)
	}
	if err != nil {
		return nil, fmt.Errorf("keep client metadata document: %w", err)
	}
	return c, nil
}

func (d *Documents) tryKeep(ctx context.Context, doc ClientDocument, m ClientMetadata) (c *Client, err error) {
	err = d.o.Tx.InTx(ctx, func(ctx context.Context) error {
		held, err := d.o.Clients.HoldClient(ctx, doc.ClientID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			held = Client{ID: doc.ClientID, Kind: KindCIMD, Metadata: m, DocumentHash: m.Hash(), CreatedAt: doc.FetchedAt, UpdatedAt: doc.FetchedAt}
			err = d.record(ctx, "client.discovered", held, nil, func() error { return d.o.Clients.CreateClient(ctx, held) })
		case err == nil && held.DocumentHash != m.Hash():
			detail := held.adopt(m, doc.FetchedAt)
			err = d.record(ctx, "client.changed", held, detail, func() error { return d.o.Clients.UpdateClient(ctx, held) })
		}
		if err != nil {
			return err
		}
		c = &held
		return d.o.Documents.PutClientDocument(ctx, doc)
	})
	return c, err
}

// adopt makes the client what its document now says, and returns what the audit
// event says beside. What the operator decided stays: a verified client may still
// be used where they must verify it first, but it is shown as verified only for
// as long as it is who they saw.
func (c *Client) adopt(m ClientMetadata, at time.Time) (detail map[string]string) {
	if because := unvouched(&c.Metadata, &m); because != "" && c.Trusted() {
		c.VerifiedUntil, detail = at, map[string]string{"verified": "ended", "because": because}
	}
	c.Metadata, c.DocumentHash, c.UpdatedAt = m, m.Hash(), at
	return detail
}

// record writes a client with its audit event.
func (d *Documents) record(ctx context.Context, event string, c Client, detail map[string]string, write func() error) error {
	if err := write(); err != nil {
		return err
	}
	all := registeredDetail(c.Metadata)
	maps.Copy(all, detail)
	return d.o.Audit.Append(ctx, audit.New(ctx, c.UpdatedAt, audit.Event{Name: event, Actor: c.ID, ClientID: c.ID, Detail: all}))
}

// fail records that the document could not be used, so that nobody asks again for
// a while. A document that breaks a rule is an event, the first time.
func (d *Documents) fail(ctx context.Context, k known, fail *ClientURLError) error {
	now := d.o.Now()
	fail.Wait = k.doc.retryPause()
	doc := ClientDocument{ClientID: k.doc.ClientID, TriedAt: now, RetryAt: now.Add(fail.Wait), Problem: fail.Problem, Failure: fail.Detail}
	if doc.Failure == "" && fail.Err != nil {
		doc.Failure = cleanText(fail.Err.Error(), maxWord)
	}
	return d.o.Tx.InTx(ctx, func(ctx context.Context) error {
		if err := d.o.Documents.FailClientDocument(ctx, doc); err != nil {
			return err
		}
		if fail.Problem != ProblemInvalid || k.doc.Problem == ProblemInvalid {
			return nil
		}
		return d.o.Audit.Append(ctx, audit.New(ctx, now, audit.Event{Name: "client.refused", Actor: doc.ClientID, ClientID: doc.ClientID,
			Outcome: "denied", Detail: map[string]string{"reason": doc.Failure}}))
	})
}
