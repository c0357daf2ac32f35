/** Resolves at the first SIGINT or SIGTERM; a second one does not wait. */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let count = 0
    const stop = () => {
      count += 1
      if (count > 1) process.exit(130)
      resolve()
    }
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
  })
}
