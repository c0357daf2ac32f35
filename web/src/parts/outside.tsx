import type { ReactNode } from 'react'

/** A link out of the page; only to the web, whatever was written down as its address. */
export function Outside({ url, children }: { url: string; children: ReactNode }) {
  if (!/^https?:\/\//i.test(url)) return <>{children}</>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}
