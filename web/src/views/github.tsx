import { Empty, Head } from '../parts/panel.tsx'

export function GithubView() {
  return (
    <>
      <Head title="GitHub" />
      <Empty title="GitHub is not connected">
        <p>
          Add <code>github:</code> to <code>orc.yaml</code> with your repositories, and tell GitHub the
          webhook's address.
        </p>
        <p>Its events, what agents decided on them and what waits for you are then here.</p>
      </Empty>
    </>
  )
}
