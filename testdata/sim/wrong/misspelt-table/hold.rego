package tierd.hold

deny contains "on hold" if input.table.name == "payrol"
