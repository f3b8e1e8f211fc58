package tierd.keep

deny contains "kept for ever" if not input.table.labels.retention == "brief"
