"""Sessions: consecutive runs with state that stays on the devices between them."""
