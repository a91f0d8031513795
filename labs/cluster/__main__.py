from labs.cluster.practice import main

main()
