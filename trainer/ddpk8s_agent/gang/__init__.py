"""The agents of a run as one gang: who may join, when all start, what ended an attempt, what it costs.

Pure, without sockets, clocks, processes or files; one seeded simulator drives the very same code:

    timing       every time-out, in one table
    ledger       what each attempt came to, kept by every member
    messages     what agents send each other, as lines of JSON
    fields       what the fields of a message must be
    events       what the two machines are told, and what they ask for
    member       the machine of every agent
    joining      its other half: the connection to the coordinator
    roster       who is here (coordinator)
    coordinator  the machine of node rank 0, which is a member too: members come and go
    gating       its parts: gather all, and start them as one
    judging                 the running attempt, and its end
    telling                 decide, make it safe, tell everybody
    ending       what is known of the end of an attempt
    merging      from the evidence of all nodes to one
    deciding     from that to a record in the ledger, and what follows
    hang         who fell silent

and around them:

    wire         lines over TCP
    links        all connections of an agent
    dialer       connections, made in the background
    network      the thread that serves both machines
    store        the ledger in files
"""
