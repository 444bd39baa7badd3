package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRules switches each rule off, in a size that is just large enough to
// show what it is for.
func TestRules(t *testing.T) {
	t.Parallel()
	three := []int8{1, 1, 1}
	tests := map[string]struct {
		size func(*Size)
		want Kind
	}{
		"WriteOnce":      {nil, Lost},
		"HeedFence":      {nil, Misplaced},
		"KnowOwnPut":     {func(s *Size) { s.Items, s.Losses = []int8{1}, 1 }, Doubled},
		"VoidOnce":       {func(s *Size) { s.Voids, s.Items, s.Losses = true, []int8{2}, 1 }, Unstable},
		"SkipWhole":      {nil, Misplaced},
		"Mark":           {nil, Undrained},
		"HoleEndsPrefix": {nil, Lost},
		"FenceEach":      {func(s *Size) { s.Items = []int8{1, 1} }, Lost},
		"FirstCheckBoth": {func(s *Size) { s.Idle, s.Wait = 4, 2 }, LateCheck},
		"RoomCondition":  {func(s *Size) { s.Cap = 2 }, Overfull},
		"AppendKeeps":    {func(s *Size) { s.Lives, s.Items = 2, []int8{1, 1} }, Stranded},
		"ReachedHands":   {nil, Waiting},
		"RefusedHands":   {func(s *Size) { s.Voids, s.Items = true, three }, Waiting},
		"UnsureHands":    {func(s *Size) { s.Items, s.Losses = []int8{2}, 1 }, Waiting},
		"FreshLife":      {func(s *Size) { s.Lives, s.Items = 2, []int8{1, 1} }, Doubled},
		"LogOutlives":    {func(s *Size) { s.Lives, s.Items = 2, []int8{1, 1} }, Stranded},
		"ExpireSettled":  {func(s *Size) { s.Lives, s.Items = 2, []int8{1, 1} }, Lost},
		"OneClaimInOrder": {func(s *Size) {
			s.Ordered, s.Concurrency, s.Actors, s.MaxItems, s.Items = true, 2, 2, 1, []int8{1, 1}
		}, Disordered},

		"CloseFirst":    {func(s *Size) { s.Ship, s.Kept, s.Items = 1, 3, []int8{1, 1} }, Twice},
		"ClosedRefuses": {func(s *Size) { s.Ship, s.Kept, s.Items = 1, 3, []int8{1, 1} }, Twice},
		"WholeWaits":    {func(s *Size) { s.Ship, s.Kept, s.Items = 1, 3, []int8{1, 1} }, Twice},
		"ClosedStays":   {func(s *Size) { s.Ship, s.Kept, s.Items, s.Lives, s.Expire = 1, 4, []int8{1, 1}, 2, 0 }, Twice},

		"ConditionLife": {func(s *Size) { s.Lives, s.Items = 2, []int8{1, 1} }, Lost},
		"ConditionRev":  {func(s *Size) { s.Actors = 2 }, TwoHolders},
		"ConditionTail": {nil, Unarmed},
		"OwnFieldsOnly": {nil, Lost},
		"RoomAdds":      {func(s *Size) { s.Cap = 3 }, Overfull},
		"TrailFromRead": {func(s *Size) { s.Concurrency, s.Idle, s.Wait, s.End = 2, 4, 1, 1 }, LateCheck},
		"TwoIndexes":    {func(s *Size) { s.Lease = 3 }, Unindexed},
		"LeaseToSettle": {func(s *Size) {
			s.Items, s.MaxItems, s.Actors, s.Runs, s.Doubles, s.End = []int8{1}, 1, 2, 4, 2, 4
		}, TwoHolders},
		"LookAgain": {func(s *Size) {
			s.Items, s.MaxItems, s.End = []int8{1, 1}, 1, 0
		}, Waiting},
		"HandWritten":    {func(s *Size) { s.Items, s.Hole, s.End = three, 0, 0 }, Waiting},
		"ConfirmCount":   {nil, Early},
		"RecordVoid":     {func(s *Size) { s.Voids, s.Items = true, three }, Spinning},
		"ClaimResetVoid": {func(s *Size) { s.Voids, s.Items, s.Runs, s.End = true, three, 2, 0 }, Overcount},
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt, listed := tests[name]
			require.True(t, listed, "a rule without a case")
			size := Small()
			size.Actors = 1
			if tt.size != nil {
				tt.size(&size)
			}
			rules, _ := Without(name)
			got := (&Model{Size: size, Rules: rules}).Explore(2_000_000)
			require.NotNil(t, got.Violation, "nothing breaks without it")
			require.Equal(t, tt.want, got.Violation.Kind, "%v", got.Violation)
			require.NotEmpty(t, got.Violation.Trace)
			t.Logf("%d states, then %v", got.States, got.Violation)
		})
	}
}

func TestWithoutUnknown(t *testing.T) {
	t.Parallel()
	_, ok := Without("Luck")
	require.False(t, ok)
}
