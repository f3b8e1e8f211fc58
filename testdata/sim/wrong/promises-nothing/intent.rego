package tierd.sim

violates contains "payroll goes" if input.table.name == "payroll"
