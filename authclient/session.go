package authclient

import (
	"context"
	"sync"
	"time"
)

const (
	// placeAge is how long what discovery found is used for refreshing.
	placeAge = 15 * time.Minute
	// askPause is how long nobody is asked again after an attempt that failed, unless
	// by Login: a program that reconnects by itself must not open window after window.
	askPause = time.Minute
	// maxStepUps is how often a person is asked for the same scopes (rule C7).
	maxStepUps = 2
	// maxDemands bounds the sets of scopes that a server can have people asked for.
	maxDemands = 32
)

// session is what a Client knows in this process. One goroutine at a time has the
// turn to change it by asking servers and people; the others wait and find what it
// brought (rule C6).
type session struct {
	turn chan struct{} // of one place; full while taken

	mu      sync.Mutex
	grant   *grant
	untried untried
	place   *place
	found   time.Time
	// metadataURL is what the last challenge named with which discovery came to its end.
	metadataURL string
	asked       attempts
	stepUps     map[string]int
	pause       pause
	// spent is a refresh token that the server refused for what asking again does not
	// change.
	spent string
	// unsaved is a rotated grant that could not be stored yet.
	unsaved unsaved
	provers map[string]*proofKey
	// nonces are the MCP server's.
	nonces *nonces
}

// untried is an access token that the MCP server has not accepted yet.
type untried struct {
	token string
	// asked says that a person or the machine identity was asked for it; otherwise it
	// was refreshed.
	asked bool
}

// attempts counts how often a person was asked.
type attempts struct {
	ended int
	err   error // of the last one
	at    time.Time
}

// pause is the time during which an authorization server is not asked again.
type pause struct {
	until time.Time
	step  time.Duration
	err   error
}

func newSession() session {
	return session{turn: make(chan struct{}, 1), stepUps: map[string]int{}, provers: map[string]*proofKey{}, nonces: newNonces()}
}

// take waits for the turn.
func (s *session) take(ctx context.Context) (release func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *session) current() *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grant
}

func (s *session) set(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grant = g
}

// setNew sets a grant that no server has accepted.
func (s *session) setNew(g *grant, asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grant, s.untried = g, untried{g.AccessToken, asked}
}

// accepted notes that the MCP server took the token.
func (s *session) accepted(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untried.token == token {
		s.untried = untried{}
	}
}

// refusedNew reports whether token is new and was never accepted, and whether
// somebody was asked for it.
func (s *session) refusedNew(token string) (is, asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is = token != "" && s.untried.token == token
	return is, is && s.untried.asked
}

func (s *session) setPlace(p *place, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place, s.found = p, now
}

// knownPlace returns what discovery found lately, or nil.
func (s *session) knownPlace(now time.Time) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place == nil || now.Sub(s.found) > placeAge {
		return nil
	}
	return s.place
}

// complete adds to a challenge the document that an earlier one named.
func (s *session) complete(ch challenge) challenge {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch.resourceMetadata == "" {
		ch.resourceMetadata = s.metadataURL
	}
	return ch
}

// remember notes the document that a challenge named and that discovery did not refuse.
func (s *session) remember(ch challenge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metadataURL = ch.resourceMetadata
}

func (s *session) attempts() attempts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// ended notes how asking a person ended, for those who waited meanwhile.
func (s *session) ended(err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = attempts{s.asked.ended + 1, err, now}
}

// failedSince returns the error of an attempt that ended since seen, or so lately
// that nobody is asked again.
func (s *session) failedSince(seen attempts, now time.Time) error {
	a := s.attempts()
	if a.err != nil && (a.ended != seen.ended || now.Sub(a.at) < askPause) {
		return a.err
	}
	return nil
}

const (
	firstPause = time.Second
	maxPause   = 2 * time.Minute
)

// rest begins a pause after err: as long as the server asks for, or longer each time.
func (s *session) rest(err error, asked time.Duration, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := min(max(firstPause, 2*s.pause.step), maxPause)
	wait := step
	if asked > 0 {
		wait = asked
	}
	s.pause = pause{until: now.Add(wait), step: step, err: err}
}

// rested ends all pauses.
func (s *session) rested() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = pause{}
}

// resting returns the error that began a pause which is not over.
func (s *session) resting(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.pause.until) {
		return s.pause.err
	}
	return nil
}

func (s *session) spend(refreshToken string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent = refreshToken
}

func (s *session) isSpent(refreshToken string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spent == refreshToken
}
