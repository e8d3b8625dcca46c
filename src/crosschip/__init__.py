"""One model, any AI chip."""
