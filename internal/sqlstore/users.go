package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ostiary-auth/ostiary/internal/login"
)

const userColumns = `id, email, email_key, name, password_hash, operator,
	disabled_at, password_changed_at, last_sign_in_at, created_at, updated_at`

// CreateUser implements login.UserStore.
func (s *Store) CreateUser(ctx context.Context, u login.User) error {
	const q = `INSERT INTO users (` + userColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	if _, err := s.exec(ctx, q, u.ID, u.Email, u.EmailKey, u.Name, u.PasswordHash, u.Operator,
		millis(u.DisabledAt), millis(u.PasswordChangedAt), millis(u.LastSignInAt),
		millis(u.CreatedAt), millis(u.UpdatedAt)); err != nil {
		return fmt.Errorf("create user: %w", err)
	}
	return nil
}

// GetUser implements login.UserStore.
func (s *Store) GetUser(ctx context.Context, id string) (login.User, error) {
	return s.getUser(ctx, `SELECT `+userColumns+` FROM users WHERE id = $1`, id)
}

// GetUserByEmail implements login.UserStore.
func (s *Store) GetUserByEmail(ctx context.Context, emailKey string) (login.User, error) {
	return s.getUser(ctx, `SELECT `+userColumns+` FROM users WHERE email_key = $1`, emailKey)
}

func (s *Store) getUser(ctx context.Context, query, arg string) (login.User, error) {
	u, err := scanUser(func(dest ...any) error { return s.row(ctx, query, []any{arg}, dest...) })
	if err != nil {
		return login.User{}, fmt.Errorf("get user: %w", err)
	}
	return u, nil
}

// ListUsers implements login.UserStore.
func (s *Store) ListUsers(ctx context.Context) ([]login.User, error) {
	const q = `SELECT ` + userColumns + ` FROM users ORDER BY email_key`
	var users []login.User
	err := s.each(ctx, q, nil, func(scan func(dest ...any) error) error {
		u, err := scanUser(scan)
		users = append(users, u)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	return users, nil
}

// UpdateUser implements login.UserStore.
func (s *Store) UpdateUser(ctx context.Context, u login.User) error {
	const q = `UPDATE users SET email = $2, email_key = $3, name = $4, password_hash = $5, operator = $6,
		disabled_at = $7, password_changed_at = $8, last_sign_in_at = $9, updated_at = $10 WHERE id = $1`
	if err := s.execOne(ctx, q, u.ID, u.Email, u.EmailKey, u.Name, u.PasswordHash, u.Operator,
		millis(u.DisabledAt), millis(u.PasswordChangedAt), millis(u.LastSignInAt), millis(u.UpdatedAt)); err != nil {
		return fmt.Errorf("update user: %w", err)
	}
	return nil
}

// TouchUser implements login.UserStore.
func (s *Store) TouchUser(ctx context.Context, id string, now time.Time) error {
	if err := s.execOne(ctx, `UPDATE users SET updated_at = $2 WHERE id = $1`, id, millis(now)); err != nil {
		return fmt.Errorf("touch user: %w", err)
	}
	return nil
}

// LockOperators implements login.UserStore.
func (s *Store) LockOperators(ctx context.Context) error { return s.LockServer(ctx, "lock.operators") }

// RecordSignIn implements login.UserStore. The conditions make a sign-in that
// was verified before a password change or a switch-off fail after it (SL-10).
func (s *Store) RecordSignIn(ctx context.Context, id, verifiedHash, newHash string, now time.Time) (bool, error) {
	const q = `UPDATE users SET last_sign_in_at = $4, password_hash = $3
		WHERE id = $1 AND password_hash = $2 AND disabled_at IS NULL`
	n, err := s.exec(ctx, q, id, verifiedHash, newHash, millis(now))
	if err != nil {
		return false, fmt.Errorf("record sign-in: %w", err)
	}
	return n == 1, nil
}

// DeleteUser implements login.UserStore.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	if err := s.execOne(ctx, `DELETE FROM users WHERE id = $1`, id); err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}

// CountUsers implements login.UserStore.
func (s *Store) CountUsers(ctx context.Context) (int, error) {
	var n int
	if err := s.row(ctx, `SELECT COUNT(*) FROM users`, nil, &n); err != nil {
		return 0, fmt.Errorf("count users: %w", err)
	}
	return n, nil
}

func scanUser(scan func(dest ...any) error) (login.User, error) {
	var u login.User
	var disabled, password, signIn, created, updated sql.NullInt64
	err := scan(&u.ID, &u.Email, &u.EmailKey, &u.Name, &u.PasswordHash, &u.Operator,
		&disabled, &password, &signIn, &created, &updated)
	u.DisabledAt, u.PasswordChangedAt, u.LastSignInAt = timeOf(disabled), timeOf(password), timeOf(signIn)
	u.CreatedAt, u.UpdatedAt = timeOf(created), timeOf(updated)
	return u, err
}

var _ login.UserStore = (*Store)(nil)
