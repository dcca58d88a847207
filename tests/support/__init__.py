"""What tests share: tables, files, stores, servers, crashes, the judge."""
