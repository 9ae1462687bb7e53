"""From a calibrated model to the next action: the robot's map, the planner and the safety filter."""
