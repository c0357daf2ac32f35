/** Created once: creating a formatter is slow. */
const TIME = new Intl.DateTimeFormat([], {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const DAY = new Intl.DateTimeFormat([], { month: 'short', day: 'numeric' })

/** The time of day, with the date if it is not today. */
export function formatTime(at: string): string {
  const date = new Date(at)
  const time = TIME.format(date)
  return date.toDateString() === new Date().toDateString() ? time : `${DAY.format(date)} ${time.slice(0, 5)}`
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return seconds < 129_600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`
}

export function formatAge(at: string, now: number): string {
  const age = now - Date.parse(at)
  return age < 1000 ? 'just now' : `${formatDuration(age)} ago`
}

export function formatCost(amount: number): string {
  return amount < 0.995 ? amount.toFixed(3) : amount.toFixed(2)
}

export function pluralize(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}
