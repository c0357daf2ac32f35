/** At most so many at once; in one place one after the other, in the order in which they came. */
export function createLanes(most: number) {
  const waiting: { place: string; begin(): void }[] = []
  const taken = new Set<string>()

  function next() {
    if (taken.size >= most) return
    const index = waiting.findIndex(({ place }) => !taken.has(place))
    const [first] = index < 0 ? [] : waiting.splice(index, 1)
    if (first === undefined) return
    taken.add(first.place)
    first.begin()
    next()
  }

  return {
    async run<T>(place: string, work: () => Promise<T>): Promise<T> {
      await new Promise<void>((begin) => {
        waiting.push({ place, begin })
        next()
      })
      try {
        return await work()
      } finally {
        taken.delete(place)
        next()
      }
    },
  }
}

export type Lanes = ReturnType<typeof createLanes>
