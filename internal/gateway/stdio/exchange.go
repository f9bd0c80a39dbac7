package stdio

import (
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// call is a request that the child has not answered.
type call struct {
	exchange  *exchange
	id, token json.RawMessage // as the client wrote them
}

// exchange is an HTTP request that waits for messages of the child.
type exchange struct {
	out  chan event
	gone chan struct{} // closed when it waits no longer
	once sync.Once
	// subscribes: it is open for changes that name it, as long as the client likes.
	subscribes bool
}

// event is what an exchange gets.
type event struct {
	raw     []byte         // nil when there is nothing to tell, only an end
	answers bool           // one call fewer to wait for
	failed  *jsonrpc.Error // the error, when raw is an error answer
	died    bool           // it was not the child that answered
}

func newExchange() *exchange { return &exchange{out: make(chan event), gone: make(chan struct{})} }

// deliver reports whether the exchange took the event.
func (ex *exchange) deliver(e event) bool {
	if ex.left() {
		return false
	}
	select {
	case ex.out <- e:
		return true
	case <-ex.gone:
		return false
	}
}

func (ex *exchange) leave() { ex.once.Do(func() { close(ex.gone) }) }

func (ex *exchange) left() bool {
	select {
	case <-ex.gone:
		return true
	default:
		return false
	}
}

func (c *call) fail(message string) {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message}
	c.exchange.deliver(event{raw: rpcError(c.id, e), answers: true, failed: e, died: true})
}
