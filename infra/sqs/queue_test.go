package sqs_test

import (
	"context"
	"strings"
	"testing"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/message"
	"sluice/infra/sqs"
	"sluice/infra/sqs/sqstest"
)

// TestHand fixes what a delivery is as a message, and that a buffer whose name
// can be no message group is handed over all the same.
func TestHand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, buffer, group string }{
		{"a buffer", "orders-2", "orders-2"},
		{"the longest name", strings.Repeat("b", 63), strings.Repeat("b", 63)},
		{"the longest group", strings.Repeat("b", 128), strings.Repeat("b", 128)},
		{"longer", strings.Repeat("b", 129), ""},
		{"none", "", ""},
		{"a space", "a b", ""},
		{"more than ASCII", "ä", ""},
		{"all that is allowed", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := &sqstest.SQS{}
			url := fake.Queue("deliver")
			want := core.Delivery{
				Ref: core.Ref{Buffer: c.buffer, Key: "\xff\x00", Shard: 7}, Destination: "crm",
				Seen: &core.Group{Life: "l", Rev: 3, Tail: 9, Claims: []core.Claim{{ID: "l-1", From: 1, To: 3, Done: core.Bits{2}, Lease: 4}}},
			}
			require.NoError(t, sqs.NewQueue(fake, url).Hand(context.Background(), want))
			out, err := fake.ReceiveMessage(context.Background(), &awssqs.ReceiveMessageInput{
				QueueUrl: &url, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
			})
			require.NoError(t, err)
			require.Len(t, out.Messages, 1)
			require.Equal(t, c.group, out.Messages[0].Attributes["MessageGroupId"])
			got, err := message.DecodeDelivery([]byte(*out.Messages[0].Body))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestHandFails(t *testing.T) {
	t.Parallel()
	fake := &sqstest.SQS{Fault: func(sqstest.Call) sqstest.Fault { return sqstest.Lost }}
	q := sqs.NewQueue(fake, fake.Queue("deliver"))
	err := q.Hand(context.Background(), core.Delivery{})
	require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
	err = q.Hand(context.Background(), core.Delivery{Ref: core.Ref{Key: strings.Repeat("k", 1<<20)}})
	require.Equal(t, core.TooLarge, core.CodeOf(err), "%v", err)
}
