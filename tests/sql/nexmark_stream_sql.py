"""NEXMark's queries as streams are asked: windows by table functions, the first rows by row numbers."""

HOPS = "TABLE(HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
BY_RANK = """
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
SELECT date_format(dateTime, 'yyyy-MM-dd') AS day,{BY_RANK}
FROM bid GROUP BY date_format(dateTime, 'yyyy-MM-dd')""",
    "q16": f"""
SELECT channel, date_format(dateTime, 'yyyy-MM-dd') AS day,
  max(date_format(dateTime, 'HH:mm')) AS minute,{BY_RANK}
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
