from setup.cluster.practice import main

main()
