"""A row of servers behind one breaker: what they draw, how clocks are lowered by priority, how many fit."""
