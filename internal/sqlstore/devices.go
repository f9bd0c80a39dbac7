package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
)

// PutDevice implements login.DeviceStore.
func (s *Store) PutDevice(ctx context.Context, d login.Device) error {
	const q = `INSERT INTO devices (id, subject, created_at, expires_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id, subject) DO UPDATE SET expires_at = $4`
	if _, err := s.exec(ctx, q, d.ID, d.Subject, millis(d.CreatedAt), millis(d.ExpiresAt)); err != nil {
		return fmt.Errorf("put device: %w", err)
	}
	return nil
}

// KnowsDevice implements login.DeviceStore.
func (s *Store) KnowsDevice(ctx context.Context, id, subject string, now time.Time) (bool, error) {
	const q = `SELECT EXISTS (SELECT 1 FROM devices WHERE id = $1 AND subject = $2 AND expires_at > $3)`
	var known bool
	if err := s.row(ctx, q, []any{id, subject, millis(now)}, &known); err != nil {
		return false, fmt.Errorf("look for a device: %w", err)
	}
	return known, nil
}

// DeleteDevices implements login.DeviceStore.
func (s *Store) DeleteDevices(ctx context.Context, subject string) error {
	if _, err := s.exec(ctx, `DELETE FROM devices WHERE subject = $1`, subject); err != nil {
		return fmt.Errorf("delete devices: %w", err)
	}
	return nil
}

var _ login.DeviceStore = (*Store)(nil)
