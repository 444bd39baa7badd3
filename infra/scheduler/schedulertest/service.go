package schedulertest

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// GetSchedule is the service's, for use in process.
func (f *Fake) GetSchedule(_ context.Context, in *scheduler.GetScheduleInput, _ ...func(*scheduler.Options)) (
	*scheduler.GetScheduleOutput, error,
) {
	if err := validateNames(in.Name, in.GroupName, nil); err != nil {
		return nil, operationError("GetSchedule", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.all[keyOf(in.GroupName, in.Name)]
	if s == nil {
		return nil, operationError("GetSchedule", notFound("Schedule %s does not exist.", *in.Name))
	}
	state := s.in.State
	if state == "" {
		state = types.ScheduleStateEnabled
	}
	group := groupOf(s.in.GroupName)
	return &scheduler.GetScheduleOutput{
		Arn: &s.arn, Name: s.in.Name, GroupName: &group, State: state, Description: s.in.Description,
		ScheduleExpression: s.in.ScheduleExpression, ScheduleExpressionTimezone: s.in.ScheduleExpressionTimezone,
		FlexibleTimeWindow: s.in.FlexibleTimeWindow, ActionAfterCompletion: s.in.ActionAfterCompletion,
		Target: s.in.Target, KmsKeyArn: s.in.KmsKeyArn, CreationDate: &s.created, LastModificationDate: &s.created,
	}, nil
}

// DeleteSchedule is the service's, for use in process.
func (f *Fake) DeleteSchedule(_ context.Context, in *scheduler.DeleteScheduleInput, _ ...func(*scheduler.Options)) (
	*scheduler.DeleteScheduleOutput, error,
) {
	if err := validateNames(in.Name, in.GroupName, in.ClientToken); err != nil {
		return nil, operationError("DeleteSchedule", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(in.GroupName, in.Name)
	if f.all[key] == nil {
		return nil, operationError("DeleteSchedule", notFound("Schedule %s does not exist.", *in.Name))
	}
	f.remove(key)
	return &scheduler.DeleteScheduleOutput{}, nil
}

// CreateScheduleGroup is the service's, for use in process.
func (f *Fake) CreateScheduleGroup(_ context.Context, in *scheduler.CreateScheduleGroupInput, _ ...func(*scheduler.Options)) (
	*scheduler.CreateScheduleGroupOutput, error,
) {
	if err := validateNames(in.Name, nil, in.ClientToken); err != nil {
		return nil, operationError("CreateScheduleGroup", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.groups[*in.Name] {
		return nil, operationError("CreateScheduleGroup", conflict("Schedule group %s already exists.", *in.Name))
	}
	f.groups[*in.Name] = true
	return &scheduler.CreateScheduleGroupOutput{ScheduleGroupArn: new(groupARN(*in.Name))}, nil
}

// DeleteScheduleGroup is the service's, for use in process: the group's
// schedules go with it.
func (f *Fake) DeleteScheduleGroup(_ context.Context, in *scheduler.DeleteScheduleGroupInput, _ ...func(*scheduler.Options)) (
	*scheduler.DeleteScheduleGroupOutput, error,
) {
	if err := validateNames(in.Name, nil, in.ClientToken); err != nil {
		return nil, operationError("DeleteScheduleGroup", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case *in.Name == "default":
		return nil, operationError("DeleteScheduleGroup", invalid("The default schedule group cannot be deleted."))
	case !f.groups[*in.Name]:
		return nil, operationError("DeleteScheduleGroup", notFound("Schedule group %s does not exist.", *in.Name))
	}
	delete(f.groups, *in.Name)
	for key, s := range f.all {
		if groupOf(s.in.GroupName) == *in.Name {
			f.remove(key)
		}
	}
	return &scheduler.DeleteScheduleGroupOutput{}, nil
}
