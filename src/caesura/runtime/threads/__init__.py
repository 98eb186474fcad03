"""Plans on several threads of this process, with the answers that they give on one."""
