package filestore

import "github.com/ostiary-auth/ostiary/authclient"

// OnStep has fn called before each step of a save.
func (s *Store) OnStep(fn func(string)) { s.dir.Step = fn }

// File returns where an entry is.
func (s *Store) File(k authclient.Key) string { return s.dir.Path(file(k)) }
