package authserver

import (
	"context"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/internal/grant"
)

// seenTx keeps the state of the context that a transaction was begun with.
type seenTx struct {
	begun   bool
	err     error
	bounded bool
}

func (s *seenTx) InTx(ctx context.Context, _ func(context.Context) error) error {
	s.begun, s.err = true, ctx.Err()
	_, s.bounded = ctx.Deadline()
	return nil
}

// An alarm is not called off by hanging up: the grant of a reused token ends
// although the request that showed it was abandoned (CO-01, RT-02).
func TestCO01_RT02_AlarmSurvivesHangingUp(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	tx := &seenTx{}
	s := &Server{o: Options{Tx: tx}}
	if err := s.endReused(ctx, &grant.Grant{ID: "g"}, grant.ReasonCodeReuse, time.Now()); err != nil {
		t.Fatal(err)
	}
	if !tx.begun || tx.err != nil || !tx.bounded {
		t.Errorf("transaction begun %t with %v, bounded %t; want a live context with a deadline", tx.begun, tx.err, tx.bounded)
	}
}
