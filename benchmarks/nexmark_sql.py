"""NEXMark's queries in SQL, for DuckDB over the tables ``person``, ``auction``, ``bid`` and ``side``.

After the benchmark's published texts; window functions of streams are written as arithmetic on times. Where
the published text leaves ties open (q19), the earlier bid counts, as it does with us. q12 reads the clock's
readings beside the bids.
"""

RANKS = """
  count(*) AS total_bids, count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions"""

SQL = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT auction, bidder, dateTime, extra, 0.908::DOUBLE * price AS price FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
SELECT P.name, P.city, P.state, A.id
FROM auction A JOIN person P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')""",
    "q4": """
SELECT Q.category, avg(Q.final) AS final
FROM (
  SELECT max(B.price) AS final, A.category
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
  GROUP BY A.id, A.category
) Q
GROUP BY Q.category""",
    "q5": """
WITH hops AS (
  SELECT auction, count(*) AS num, w
  FROM (
    SELECT auction, epoch_us(dateTime) // 2000000 - h AS w
    FROM bid, (SELECT unnest([0, 1, 2, 3, 4]) AS h)
  )
  GROUP BY auction, w
)
SELECT auction, num
FROM hops JOIN (SELECT max(num) AS maxn, w FROM hops GROUP BY w) USING (w)
WHERE num >= maxn""",
    "q6": """
SELECT Q.seller, avg(Q.final) OVER (
    PARTITION BY Q.seller ORDER BY Q.expires, Q.id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW
  ) AS avg
FROM (
  SELECT max(B.price) AS final, A.id, A.seller, A.expires
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
  GROUP BY A.id, A.seller, A.expires
) Q""",
    "q7": """
SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
FROM bid B JOIN (
  SELECT max(price) AS maxprice, epoch_us(dateTime) // 10000000 AS w
  FROM bid GROUP BY w
) B1 ON B.price = B1.maxprice
WHERE epoch_us(B.dateTime) // 10000000 = B1.w""",
    "q8": """
SELECT P.id, P.name, make_timestamp(P.w * 10000000) AS starttime
FROM (
  SELECT id, name, epoch_us(dateTime) // 10000000 AS w FROM person GROUP BY id, name, w
) P JOIN (
  SELECT seller, epoch_us(dateTime) // 10000000 AS w FROM auction GROUP BY seller, w
) A ON P.id = A.seller AND P.w = A.w""",
    "q9": """
SELECT * EXCLUDE (rownum) FROM (
  SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.extra AS bid_extra, B.dateTime AS bid_dateTime,
    A.* EXCLUDE (id),
    row_number() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) AS rownum
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
)
WHERE rownum <= 1""",
    "q10": """
SELECT auction, bidder, price, dateTime, extra,
  strftime(dateTime, '%Y-%m-%d') AS day, strftime(dateTime, '%H:%M') AS minute
FROM bid""",
    "q11": """
SELECT bidder, count(*) AS bid_count
FROM (
  SELECT bidder, sum(fresh) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
  FROM (
    SELECT bidder, dateTime,
      coalesce(dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime)
        > INTERVAL 10 SECOND, true)::INT AS fresh
    FROM bid
  )
)
GROUP BY bidder, session""",
    "q12": """
SELECT bidder, count(*) AS bid_count
FROM bid GROUP BY bidder, epoch_us(arrived) // 10000000""",
    "q13": """
SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
FROM bid B JOIN side S ON B.auction % 10000 = S.key""",
    "q14": """
SELECT auction, bidder, dateTime, extra, 0.908::DOUBLE * price AS price,
  CASE
    WHEN hour(dateTime) >= 8 AND hour(dateTime) <= 18 THEN 'dayTime'
    WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bidTimeType,
  length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908::DOUBLE * price > 1000000 AND 0.908::DOUBLE * price < 50000000""",
    "q15": f"SELECT strftime(dateTime, '%Y-%m-%d') AS day,{RANKS}\nFROM bid GROUP BY day",
    "q16": f"""
SELECT channel, strftime(dateTime, '%Y-%m-%d') AS day, max(strftime(dateTime, '%H:%M')) AS minute,{RANKS}
FROM bid GROUP BY channel, day""",
    "q17": """
SELECT auction, strftime(dateTime, '%Y-%m-%d') AS day, count(*) AS total,
  count(*) FILTER (WHERE price < 10000) AS rank1,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2,
  count(*) FILTER (WHERE price >= 1000000) AS rank3,
  min(price) AS min, max(price) AS max, avg(price) AS avg, sum(price)::BIGINT AS sum
FROM bid GROUP BY auction, day""",
    "q18": """
SELECT auction, bidder, price, channel, url, extra, dateTime
FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS rank_number FROM bid
)
WHERE rank_number <= 1""",
    "q19": """
SELECT auction, bidder, price, channel, url, extra, dateTime, rank_number
FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, dateTime) AS rank_number FROM bid
)
WHERE rank_number <= 10""",
    "q20": """
SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.extra, B.dateTime, A.itemName, A.description,
  A.initialBid, A.reserve, A.expires, A.seller, A.category, A.extra AS auction_extra,
  A.dateTime AS auction_dateTime
FROM bid B INNER JOIN auction A ON B.auction = A.id
WHERE A.category = 10""",
    "q21": r"""
SELECT auction, bidder, price, channel,
  CASE
    WHEN lower(channel) = 'apple' THEN '0'
    WHEN lower(channel) = 'google' THEN '1'
    WHEN lower(channel) = 'facebook' THEN '2'
    WHEN lower(channel) = 'baidu' THEN '3'
    ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)
  END AS channel_id
FROM bid
WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
  OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
  split_part(url, '/', 6) AS dir3
FROM bid""",
}
