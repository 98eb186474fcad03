"""NEXMark's queries as streams are asked: windows by table functions, the first rows by row numbers."""

from benchmarks.nexmark_sql import RANKS

HOPS = "TABLE(HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
OPEN = "A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires"

QUERIES = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT auction, bidder, dateTime, extra, CAST(0.908 AS DOUBLE) * price AS price FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE mod(auction, 123) = 0",
    "q3": """
SELECT P.name, P.city, P.state, A.id
FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')""",
    "q4": f"""
SELECT Q.category, avg(Q.final) FROM (
  SELECT max(B.price) AS final, A.category FROM auction A, bid B WHERE {OPEN} GROUP BY A.id, A.category
) Q
GROUP BY Q.category""",
    "q5": f"""
SELECT Bids.auction, Bids.num
FROM (
  SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
  FROM {HOPS} GROUP BY auction, window_start, window_end
) AS Bids
JOIN (
  SELECT max(Counts.num) AS maxn, Counts.starttime, Counts.endtime
  FROM (
    SELECT count(*) AS num, window_start AS starttime, window_end AS endtime
    FROM {HOPS} GROUP BY auction, window_start, window_end
  ) AS Counts
  GROUP BY Counts.starttime, Counts.endtime
) AS Most
ON Bids.starttime = Most.starttime AND Bids.endtime = Most.endtime AND Bids.num >= Most.maxn""",
    "q6": f"""
SELECT C.seller, avg(W.final) OVER (
    PARTITION BY C.seller ORDER BY C.closes ROWS BETWEEN 9 PRECEDING AND CURRENT ROW
  ) AS avg
FROM closing C JOIN (
  SELECT A.id, max(B.price) AS final FROM auction A, bid B WHERE {OPEN} GROUP BY A.id
) W ON C.id = W.id""",
    "q7": """
SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
FROM bid B JOIN (
  SELECT max(price) AS maxprice, window_start AS begun, window_end AS ended
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) W ON B.price = W.maxprice
WHERE B.dateTime >= W.begun AND B.dateTime < W.ended""",
    "q8": """
SELECT P.id, P.name, P.starttime
FROM (
  SELECT id, name, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
  GROUP BY id, name, window_start, window_end
) P JOIN (
  SELECT seller, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
  GROUP BY seller, window_start, window_end
) A ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime""",
    "q9": f"""
SELECT auction, bidder, price, channel, url, bid_extra, bid_dateTime, itemName, description,
  initialBid, reserve, dateTime, expires, seller, category, extra
FROM (
  SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.extra AS bid_extra, B.dateTime AS bid_dateTime,
    A.itemName, A.description, A.initialBid, A.reserve, A.dateTime, A.expires, A.seller, A.category, A.extra,
    ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) AS n
  FROM auction A, bid B WHERE {OPEN}
)
WHERE n <= 1""",
    "q10": """
SELECT auction, bidder, price, dateTime, extra,
  date_format(dateTime, 'yyyy-MM-dd'), date_format(dateTime, 'HH:mm')
FROM bid""",
    "q11": """
SELECT bidder, count(*) AS bid_count
FROM TABLE(SESSION(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end""",
    "q13": """
SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
FROM bid B JOIN side S ON mod(B.auction, 10000) = S.key""",
    "q15": f"""
SELECT date_format(dateTime, 'yyyy-MM-dd') AS day,{RANKS}
FROM bid GROUP BY date_format(dateTime, 'yyyy-MM-dd')""",
    "q16": f"""
SELECT channel, date_format(dateTime, 'yyyy-MM-dd') AS day,
  max(date_format(dateTime, 'HH:mm')) AS minute,{RANKS}
FROM bid GROUP BY channel, date_format(dateTime, 'yyyy-MM-dd')""",
    "q18": """
SELECT auction, bidder, price, channel, url, extra, dateTime
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS n FROM bid)
WHERE n <= 1""",
    "q19": """
SELECT auction, bidder, price, channel, url, extra, dateTime, n
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, dateTime) AS n FROM bid)
WHERE n <= 10""",
    "q22": """
SELECT auction, bidder, price, channel,
  split(url, '/')[3] AS dir1, split(url, '/')[4] AS dir2, split(url, '/')[5] AS dir3
FROM bid""",
}

FLINK = {
    "q12": """
SELECT bidder, count(*) AS bid_count
FROM TABLE(TUMBLE(TABLE arriving, DESCRIPTOR(came), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end""",
    "q14": """
SELECT auction, bidder, dateTime, extra, 0.908 * price AS price,
  CASE
    WHEN HOUR(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
    WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bidTimeType,
  count_char(extra, 'c') AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q17": """
SELECT auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS `day`, count(*) AS total,
  count(*) FILTER (WHERE price < 10000) AS rank1,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2,
  count(*) FILTER (WHERE price >= 1000000) AS rank3,
  min(price) AS `min`, max(price) AS `max`, avg(price) AS `avg`, sum(price) AS `sum`
FROM bid GROUP BY auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd')""",
    "q20": """
SELECT auction, bidder, price, channel, url, B.extra, B.dateTime, itemName, description, initialBid, reserve,
  expires, seller, category, A.extra, A.dateTime
FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
WHERE A.category = 10""",
    "q21": """
SELECT auction, bidder, price, channel,
  CASE lower(channel)
    WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
    ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
  END AS channel_id
FROM bid
WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
  OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
SELECT auction, bidder, price, channel,
  SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3
FROM bid""",
}
"""Queries whose functions mean something else in Flink, in its dialect."""
