package costtest

import "time"

// usage is what was asked of AWS, or its average.
type usage struct {
	calls                float64 // requests to DynamoDB
	read, write, indexed float64 // its units; indexed are writes to the indexes
	kept                 float64 // bytes of segments
	sent, polled         float64 // requests to SQS by functions, and by Lambda on their behalf
	schedules            float64 // created, each of which fires once
	http                 float64 // requests to the HTTP API
	invocations          float64
	gbSeconds            float64
	logged               float64 // bytes of logs
}

// add is the sum of a usage and n times another.
func (u usage) add(v usage, n float64) usage {
	return usage{
		calls: u.calls + n*v.calls,
		read:  u.read + n*v.read, write: u.write + n*v.write, indexed: u.indexed + n*v.indexed,
		kept: u.kept + n*v.kept, sent: u.sent + n*v.sent, polled: u.polled + n*v.polled,
		schedules: u.schedules + n*v.schedules, http: u.http + n*v.http,
		invocations: u.invocations + n*v.invocations, gbSeconds: u.gbSeconds + n*v.gbSeconds, logged: u.logged + n*v.logged,
	}
}

func (u usage) times(n float64) usage { return usage{}.add(u, n) }

const gb = 1e9

// The costs of a usage, by service, in dollars.

func (u usage) dynamoDB() float64 { return (u.write+u.indexed)*priceWrite + u.read*priceRead }

func (u usage) sqs() float64 { return (u.sent + u.polled) * priceSQS }

func (u usage) lambda() float64 { return u.invocations*priceInvocation + u.gbSeconds*priceGBSecond }

func (u usage) scheduler() float64 { return u.schedules * priceSchedule }

func (u usage) api() float64 { return u.http * priceHTTP }

func (u usage) logs() float64 { return u.logged / gb * priceLog }

// storage is the cost of what is kept for as long as it is.
func (u usage) storage(kept time.Duration) float64 {
	return u.kept / gb * (priceStored + priceBackups) * kept.Hours() / month.Hours()
}

// cost is all of it.
func (u usage) cost(kept time.Duration) float64 {
	return u.dynamoDB() + u.sqs() + u.lambda() + u.scheduler() + u.api() + u.logs() + u.storage(kept)
}
