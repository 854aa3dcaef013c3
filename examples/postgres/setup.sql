-- A demo database: twenty thousand people, and a schema that readers may look into.
CREATE TABLE people AS
SELECT i AS id,
       (ARRAY['north', 'south', 'east', 'west'])[1 + (i * 7919) % 4] AS region,
       18 + (i * 104729) % 70 AS age,
       CASE WHEN (i * 15485863::bigint) % 100 < 20 + 10 * ((i * 7919) % 4) THEN 'yes' ELSE 'no' END AS benefits
FROM generate_series(1, 20000) AS t(i);
CREATE SCHEMA open;
