"""Files that orchestrators start a plan by: values from the plan, fields as recorded with version and source."""
