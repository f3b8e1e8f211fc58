package tierd.sim

violation contains "too young" if input.segment.age < 3600000000000
