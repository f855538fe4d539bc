"""From the spec to what is sent or started: pure."""
