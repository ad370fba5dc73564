DELETE FROM inbox_member WHERE consumer_group = $1 AND instance = $2
