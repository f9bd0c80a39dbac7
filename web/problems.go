package web

// Messages of a FieldProblem: keys of the catalogue.
const (
	ProblemField         = "problem.field"          // anything else about one field
	ProblemEmail         = "problem.email"          // no or no valid email address
	ProblemEmailTaken    = "problem.email_taken"    // an account has it
	ProblemName          = "problem.name"           // no name, or one too long
	ProblemPasswordShort = "problem.password_short" // fewer than 12 characters
	ProblemPasswordLong  = "problem.password_long"  // longer than the server takes
	ProblemURL           = "problem.url"            // no absolute https URL
	ProblemURLTaken      = "problem.url_taken"      // that MCP server is known
)
